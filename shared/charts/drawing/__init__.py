"""What every figure is made with.

colours        every colour, on a light and on a dark screen
style          the sizes of the house; an empty figure
svg, save      files and elements of a page: one drawing, both palettes
contenders     names, colours and markers of the stages and libraries; the small print
axes           logarithmic axes, labels that make room for each other, columns of numbers
words          numbers with their units, for headlines and alternative texts
"""
