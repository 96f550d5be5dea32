"""A trained network as a file that others can open.

onnx_graph       the network as a graph of ONNX, the format that most runtimes read
eight_bit_graph  the same with weights of eight bits, and pairs of nodes where a number is rounded
equal_answers    the file checked by onnx, and its answers in ONNX Runtime compared with stage 2's

All need the extra `onnx`. Nothing else of the project imports it.
"""
