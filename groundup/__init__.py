"""The `groundup` program and the tools around the four floors.

entry             where the program begins; __main__ makes it `python -m groundup`, too
cli, commands/    the program: one command a file
own_packages      a user's package under the name of one of ours
crash             the net under it: a mistake of groundup's own
stages            which stages a command works on
race              the main job: every stage trains, and all are compared
race_ladders      the ladders of its third chart
race_results      its results document and charts; race_bar is its progress bar; race_file reads the document again
train, recipes    a training with the settings of `groundup train`; those of the known networks
run_notes         the settings that a checkpoint holds, checked
ranks             a training on several processes: how they start, find each other and end
scaling           how a training scales over them, measured and by a model
check             all stages against a reference, and their gradients
progress_lines    what a long command is doing, on a terminal and in a log
bench_plan        the options of `groundup bench` as a plan
profiling         what `groundup profile` measures, and the run
look, inside, inside_layers
                  a look inside a trained network; what it has learned
grad_cam          which places of an image speak for a class; evidence_picture draws them
predict           a trained network's answer to pictures
export            a trained network as a file of ONNX
eight_bits        a trained network in eight bits, and what it loses
run_architecture  the layers of a run's network, drawn, with the times of its profile
trained           a trained network of a run, and its answers to the test images
live, live_view   measures of a running training; the view that shows them
doctor/           what this machine has and lacks, and the command that mends it
gpu_report/       everything that is to be known of stage 4 on a GPU, in one command and one file
kernels/          the catalogue of the project's own CUDA kernels
compiling/        every kernel through a GPU's compiler, without a GPU
course/           the exercises, their grader and the learner's folder
studio/           what is better seen than read, in a browser
serve/            trained networks as a service, by the Open Inference Protocol
"""

__version__ = "0.2.0"
