"""PyTorch, where it is installed: what the stages are compared with.

pytorch          its products, steps, inference and training, timed like those of a stage
pytorch_layers   its layers and networks
pytorch_device   the same on a GPU, eager and from CUDA graphs, TF32 off and on
"""
