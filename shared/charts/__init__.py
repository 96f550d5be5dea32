"""The figures, in one house style, and what puts them together.

    drawing    colours, sizes, axes, words and files: what every figure is made with
    figures    one file for each figure
    book       all of them, in reading order
    report     one HTML file of figures, tables and environment

A figure is a function from `Results` to a `Chart`, or to None where too little was measured for it.
"""
