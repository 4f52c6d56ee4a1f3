package scripts

// Type is the type of a parameter, in the terms of JSON Schema.
type Type string

// The types. A switch of PowerShell is a boolean.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	Array   Type = "array"
	Object  Type = "object"
	Any     Type = "" // no type is given, or one that we do not know
)

// Parameter is one parameter of a script.
type Parameter struct {
	Name        string
	Type        Type
	Items       Type // of an array; Any if it does not say
	Switch      bool // PowerShell: given or not, it takes no value
	Required    bool
	Description string
	// RequiredIn are the parameter sets in which a parameter is mandatory that is not so in all of them.
	RequiredIn []string
	Aliases    []string
	Default    Constant

	Values  []string // the only ones that it takes, or that items of an array have; nil: any
	Range   Range    // of a number
	Pattern Pattern  // of a text
}

// Range bounds a number, both ends included; nil for no bound.
type Range struct{ Min, Max *float64 }

// Constant is a default value, if it is known without running the script.
type Constant struct {
	Known bool
	Value any // string, int64, float64, bool, nil, or []any of these
}

// Description is a script's description of itself.
type Description struct {
	Synopsis   string
	Details    string
	Parameters []Parameter
	// Note says why the parameters are not known; "" if they are. Such a script takes a list of plain words.
	Note string
}

// Schema returns the JSON Schema of a script's arguments.
func (d Description) Schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	if d.Note != "" {
		properties["args"] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": d.Note}
	}
	for _, p := range d.Parameters {
		properties[p.Name] = p.schema()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (p Parameter) schema() map[string]any {
	out := map[string]any{}
	if p.Type != Any {
		out["type"] = string(p.Type)
	}
	inner := out
	if p.Type == Array {
		items := map[string]any{}
		if p.Items != Any {
			items["type"] = string(p.Items)
		}
		out["items"], inner = items, items
	}
	if len(p.Values) > 0 {
		inner["enum"] = p.Values
	}
	if pattern := p.Pattern.schema(); pattern != "" {
		inner["pattern"] = pattern
	}
	if p.Range.Min != nil {
		inner["minimum"] = *p.Range.Min
	}
	if p.Range.Max != nil {
		inner["maximum"] = *p.Range.Max
	}
	if p.Default.Known && p.Default.Value != nil {
		out["default"] = p.Default.Value
	}
	if text := p.describe(); text != "" {
		out["description"] = text
	}
	return out
}

// describe returns the description with what a schema cannot say.
func (p Parameter) describe() string {
	text := p.Description
	add := func(more string) {
		if text != "" {
			text += " "
		}
		text += more
	}
	for _, set := range p.RequiredIn {
		add("Needed in the parameter set " + set + ".")
	}
	if p.Pattern.Text != "" {
		add(p.Pattern.describe())
	}
	return text
}
