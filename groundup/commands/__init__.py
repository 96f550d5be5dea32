"""The `groundup` commands, one file each: arguments in, a table or JSON out. The work is done one folder up.

race, race_summary         the main job, and its summary on the terminal
train, train_options       train one stage; the options that are settings of its run
look                       see inside a trained network
predict                    what a trained network sees in a picture
export                     a trained network as an ONNX file
serve                      trained networks as a service
check                      agreement of the stages, gradients, compiled kernels
check_eight_bits           its option --int8: what a network loses in eight bits
bench, bench_compare       measure; compare two results
bench_ranks                how training scales over several processes
profile                    where the time of a training step goes
charts                     draw a results file again
doctor                     this machine
run, lens                  a script with kernels; what a kernel does to memory
learn, learn_output        the course; what it prints
learn_watch, keyboard      watching on a terminal; keys without Enter
learn_detective            its detective exercises
learn_grade                many learners' folders, in one table
studio                     the studio, in a browser
"""
