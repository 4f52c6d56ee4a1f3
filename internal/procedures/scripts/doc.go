// Package scripts finds an operator's scripts, reads from their text which parameters they take, and runs them.
//
// A script's parameters are read from its own text, which is parsed and never run: the comment help and the param()
// block of PowerShell, and lines of the form "# @param name type required description" of all others.
package scripts
