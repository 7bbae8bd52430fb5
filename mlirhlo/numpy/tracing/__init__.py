"""Recording a function: the computation under construction, trees of arguments, and the signatures of calls."""
