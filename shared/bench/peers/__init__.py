"""PyTorch, where it is installed: what the stages are compared with.

pytorch          its products, steps, inference and training, timed like those of a stage
pytorch_layers   its layers and networks
"""
