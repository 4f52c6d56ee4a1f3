package files

import (
	"encoding/binary"
	"testing"
)

func FuzzAccessLists(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{2, 0, 0, 0})
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := parseList(raw)
		if err != nil {
			if l != nil {
				t.Errorf("%v, and %v", l, err)
			}
			return
		}
		again := binary.LittleEndian.AppendUint32(nil, 2)
		for _, e := range l {
			again = binary.LittleEndian.AppendUint16(again, e.tag)
			again = binary.LittleEndian.AppendUint16(again, e.perm)
			again = binary.LittleEndian.AppendUint32(again, uint32(e.id))
		}
		if string(again) != string(raw) {
			t.Errorf("%x was read as %v", raw, l)
		}
		named := l.entriesFor(ModeUser{Known: true, UID: 5, Groups: []int{6}}, 0, 0)
		if e, gives := named.gives(mayWrite); gives && e.perm&l.mask()&mayWrite == 0 {
			t.Errorf("%v gives more than its mask", e)
		}
	})
}
