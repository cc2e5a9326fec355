"""The console: pages for people, served by the API process.

session      the signed-in key: cookie, CSRF token, rights
page_route   errors as pages | forms: fields of a form | cursors: keyset pages
rendering    templates, their filters and the security policy
waterfall    an event's time, in parts | word_marks: differences of texts, source words
assets       scripts and styles, vendored files with their hashes in vendor.json
pages/       a file for each feature; templates/ has a file of the same name

A page calls the functions of the API's routes, or the stores that these call, so it shows and
changes exactly what the API would for the same key.
"""
