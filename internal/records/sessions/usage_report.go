package sessions

// UsageReport is the usage of sessions for programs.
type UsageReport struct {
	Days  []UsageOfDay `json:"days"`
	Total UsageSum     `json:"total"`
}

// UsageOfDay is the usage of the sessions of one tier that began on one day.
type UsageOfDay struct {
	Day  string `json:"day" doc:"On which the sessions began, in UTC"`
	Tier int    `json:"tier"`
	UsageSum
}

// UsageSum is the usage of several sessions.
type UsageSum struct {
	Sessions int `json:"sessions"`
	Usage
}

// NewUsageReport makes one of the sums by day and tier.
func NewUsageReport(groups []UsageGroup) UsageReport {
	out := UsageReport{Days: []UsageOfDay{}}
	for _, g := range groups {
		out.Days = append(out.Days, UsageOfDay{g.Day, int(g.Tier), UsageSum{g.Sessions, g.Usage}})
		out.Total.Sessions += g.Sessions
		out.Total.Usage = out.Total.Add(g.Usage)
	}
	return out
}
