"""A trained network as a file that others can open.

onnx_graph     the network as a graph of ONNX, the format that most runtimes read
equal_answers  the file checked by onnx, and its answers in ONNX Runtime compared with stage 2's

Both need the extra `onnx`. Nothing else of the project imports it.
"""
