"""One HTML file of figures, tables and environment.

page           the whole of it
page_numbers   the numbers at its head
page_figures   the figures, each with its text
page_tables    the tables
page_machine   what the machine is
page_style     the style sheet
"""
