"""Commands for operators: what lies outside the record, in other engines and in object storage."""
