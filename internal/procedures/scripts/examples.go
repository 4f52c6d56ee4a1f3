package scripts

// examples returns example calls, by command.
func examples() map[string]string {
	return map[string]string{
		"scripts list": "claudeops scripts list",
		"scripts runs": "claudeops scripts runs --script check_disk --limit 5",
	}
}
