package record

// Pruned says how many rows of a kind were removed because of their age, or would be.
type Pruned struct {
	Kind string `json:"kind"`
	Rows int64  `json:"rows"`
}
