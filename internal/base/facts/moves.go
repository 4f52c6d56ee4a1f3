package facts

import "path"

// withMoves gives the files of a change, in which one that is deleted and one that is added with most of the same lines
// are one file with an old and a new text, and the old path of each that was moved, by its index. It takes time linear
// in the size of the texts.
func withMoves(files []File) (joined []File, movedFrom map[int]string) {
	owners := deletedLines(files)
	if len(owners) == 0 {
		return files, nil
	}
	from := map[int]int{} // the index of a deleted file, by that of the added one
	taken := map[int]bool{}
	for i, f := range files {
		if f.Old != "" || f.New == "" {
			continue
		}
		if source := sourceOf(f, files, owners); source >= 0 && !taken[source] {
			from[i], taken[source] = source, true
		}
	}
	movedFrom = map[int]string{}
	for i, f := range files {
		if taken[i] {
			continue
		}
		if source, ok := from[i]; ok {
			f.Old = files[source].Old
			movedFrom[len(joined)] = files[source].Path
		}
		joined = append(joined, f)
	}
	return joined, movedFrom
}

// deletedLines maps the lines of deleted files to the first file that has them, by its index.
func deletedLines(files []File) map[string]int {
	var owners map[string]int
	for i, f := range files {
		if f.New != "" || f.Old == "" {
			continue
		}
		for _, line := range splitLines(f.Old) {
			if _, ok := owners[line]; ok || line == "" {
				continue
			}
			if owners == nil {
				owners = map[string]int{}
			}
			owners[line] = i
		}
	}
	return owners
}

// sourceOf gives the index of the deleted file that has most of the lines of an added one; -1 if none has.
func sourceOf(added File, files []File, owners map[string]int) int {
	counts, lines := map[int]int{}, 0
	for _, line := range splitLines(added.New) {
		if line == "" {
			continue
		}
		lines++
		if i, ok := owners[line]; ok {
			counts[i]++
		}
	}
	for i, count := range counts {
		if count*2 > lines && path.Ext(files[i].Path) == path.Ext(added.Path) {
			return i // at most one file has more than half
		}
	}
	return -1
}
