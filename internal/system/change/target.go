package change

// TargetName names an agent that files are made for.
type TargetName string
