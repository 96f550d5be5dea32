"""The `groundup` commands, one file each: arguments in, a table or JSON out. The work is done one folder up.

race, train, look          train and see inside
check                      agreement of the stages, gradients, compiled kernels
bench, bench_compare       measure; set two results beside each other
charts                     draw a results file again
doctor                     this machine
run, lens                  a script with kernels; what a kernel does to memory
learn                      the course
"""
