"""HLO instructions and fusions as functions over loops, memrefs and vectors."""
