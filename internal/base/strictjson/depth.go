package strictjson

// nestedUpTo returns the offset of the first bracket that opens a level deeper than depth, and whether there is one;
// without one it is the length of raw. It counts brackets outside of strings, which is right as far as raw is
// well-formed.
func nestedUpTo(raw []byte, depth int) (end int, deeper bool) {
	level := 0
	for at := 0; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			at = stringEnd(raw, at)
		case '{', '[':
			if level++; level > depth {
				return at, true
			}
		case '}', ']':
			level--
		}
	}
	return len(raw), false
}

// stringEnd returns the offset of the quote that closes the string beginning at an offset, or the length of raw.
func stringEnd(raw []byte, at int) int {
	for at++; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			return at
		case '\\':
			at++ // whatever is escaped ends nothing
		}
	}
	return len(raw)
}
