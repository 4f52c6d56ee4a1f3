package scripts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FromTexts makes arguments of texts, as a person types them: by the type that the script's schema has for a name. A
// list has one text for each item. What is wrong with them is said for all at once; unknown names are left to Check.
func FromTexts(schema map[string]any, given map[string][]string) (arguments map[string]any, problems []string) {
	properties, _ := schema["properties"].(map[string]any)
	arguments = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		property, _ := properties[canonical(properties, name)].(map[string]any)
		texts := given[name]
		if property["type"] == string(Array) {
			items, _ := property["items"].(map[string]any)
			list := []any{}
			for _, text := range texts {
				v, problem := fromText(items["type"], text)
				if problem != "" {
					problems = append(problems, fmt.Sprintf("%q %s", name, problem))
				}
				list = append(list, v)
			}
			arguments[name] = list
			continue
		}
		if len(texts) != 1 {
			problems = append(problems, fmt.Sprintf("%q takes one value", name))
			continue
		}
		v, problem := fromText(property["type"], texts[0])
		if problem != "" {
			problems = append(problems, fmt.Sprintf("%q %s", name, problem))
		}
		arguments[name] = v
	}
	return arguments, problems
}

// canonical returns the name as the schema has it, letter case aside.
func canonical(properties map[string]any, name string) string {
	if _, has := properties[name]; has {
		return name
	}
	for known := range properties {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return name
}

func fromText(of any, text string) (v any, problem string) {
	switch of {
	case string(Boolean):
		if text != "true" && text != "false" {
			return nil, "must be true or false"
		}
		return text == "true", ""
	case string(Integer), string(Number):
		number := json.Number(text)
		if _, err := number.Float64(); err != nil {
			return nil, "must be a number"
		}
		return number, ""
	case string(Object):
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return nil, "must be an object in JSON"
		}
		return object, ""
	}
	return text, ""
}
