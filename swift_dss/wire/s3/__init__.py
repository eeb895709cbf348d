"""S3's words in Swift's metadata.

Holds the stored forms of lifecycle rules and of restorations.
In: rules, restorations. Out: text of headers, and back.
Never: a form that was not checked whole.
"""
