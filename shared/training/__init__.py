"""Training: the loop that every stage shares, and its parts, from schedules to checkpoints.

loop           the training loop
settings       its settings: TrainingSettings, Saving, Hooks
epochs         the steps of an epoch
shared_step    a step by a batch in several parts: one after the other, or on several ranks
schedules      the learning rate over the epochs
early_stopping       the best epoch so far, and how many came after it
metrics        evaluation of a network, and the record of each epoch
checkpoints    a network and its optimizer in one file
checkpoint_file      the form of such a file and its checksum, before an array is made
checkpoint_header    the header of such a file, checked: it may come from a stranger
runs           the folder of a run, and what it needs to go on
run_lock       keeps a second training out of that folder
recorder       writes down how a training goes while it goes
step_records   its file of steps, steps.jsonl
run_facts      its file about the run itself, run.json
progress       the progress bar
interrupts     Ctrl-C between two steps
"""
