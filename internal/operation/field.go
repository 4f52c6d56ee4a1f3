package operation

import (
	"reflect"
	"strings"
)

// Field is a field of an input or an output.
type Field struct {
	reflect.StructField
	JSON     string // its name
	Optional bool   // an output may lack it
}

// Fields lists the fields of a struct type that JSON has.
func Fields(t reflect.Type) (fields []Field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			fields = append(fields, Field{f, name, strings.Contains(options, "omitempty")})
		}
	}
	return fields
}
