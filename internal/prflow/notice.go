package prflow
