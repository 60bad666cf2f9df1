"""Models: what search asks of them (`protocols`) and how to open one (`embedders`)."""
