"""Export and import: everything that a project stores about its users, as lines of JSON.

records    the schema of the lines: one class per `type`
export     read a project as lines, in one snapshot
renaming   ids of the lines -> ids in the project
planning   lines of one scope -> rows, receipt lines and counts
coverage   every table, and the line that has its rows or the reason why none has
"""
