package stdio

import (
	"strings"
	"testing"
)

func TestTrailingID(t *testing.T) {
	tests := map[string]struct{ tail, want string }{
		"an integer":                        {`"}},"jsonrpc":"2.0","id":3}`, "3"},
		"a negative integer":                {`}},"id":-3}`, "-3"},
		"a string":                          {`}},"id":"abc"}`, `"abc"`},
		"a string with escapes":             {`}},"id":"a\"b\\"}`, `"a\"b\\"`},
		"white space everywhere":            {"}} , \"id\" : 3 } \t", "3"},
		"an id that is not the last member": {`,"id":3,"x":1}`, ""},
		"an id of a nested object":          {`,"x":{"y":1,"id":3}}`, ""},
		"a key that ends in id":             {`,"x\"id":3}`, ""},
		"a text inside a string":            {`\",\"id\":3}`, ""},
		"a string that is not closed":       {`,"id":3}"`, ""},
		"a fraction":                        {`,"id":3.5}`, ""},
		"null":                              {`,"id":null}`, ""},
		"two values":                        {`,"id":3 4}`, ""},
		"an object":                         {`,"id":{}}`, ""},
		"no id":                             {`,"x":3}`, ""},
		"a string that holds the key":       {`,"id":"x\"id\":"}`, `"x\"id\":"`},
		"a cut key":                         {`id":3}`, ""},
		"nothing":                           {``, ""},
		"a brace":                           {`}`, ""},
		"an array":                          {`,"id":3]`, ""},
		"a string that is too long":         {`,"id":"` + strings.Repeat("x", maxIDLength+1) + `"}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := trailingID([]byte(tt.tail)).raw; got != tt.want {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

func TestShortenKeepsCharactersWhole(t *testing.T) {
	if got := shorten(strings.Repeat("é", 100)); got != strings.Repeat("é", 64) {
		t.Errorf("got %q", got)
	}
	if got := shorten("x" + strings.Repeat("é", 100)); got != "x"+strings.Repeat("é", 63) {
		t.Errorf("got %q", got)
	}
}
