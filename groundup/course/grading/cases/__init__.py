"""How a mended program of a detective exercise is graded: right results, and the fault is gone.

A file a case. GRADES has the function that makes the checks, by the case's id, as in the files of the weeks.

week07_pair_maxima, week08_dot      C, on arrays with margins around them
week09_smooth, week10_brighten, week11_matrix_vector, week12_swish, week13_row_totals, week14_bias_gradient,
week15_gradient_norm, week16_transpose, week17_mean_activation
                                    kernels, on the emulator
week21_edges                        C
week23_box_blur, week23_channel_means
                                    kernels, on the emulator
"""
