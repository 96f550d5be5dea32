"""The faster ways of a network, each equal to the plain way of network.py number for number.

choice                              which plan a network takes; the ladder of steps
mlp_memory, mlp_launches            an mlp's step in ever fewer launches
persistent                          many of an mlp's steps in one launch
operations, operation_schedule, operation_plan, operation_launches
                                    any network as a list of operations, in memory planned once
optimizer_update                    an optimizer's step as these launches take it
cuda_graphs, replayed_steps         a step as one order of the host
resident, resident_data, resident_host
                                    training with the data set on the device; what the host sends meanwhile
"""
