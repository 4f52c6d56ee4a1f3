// Package gql executes GraphQL documents against a schema and values that are made on the spot.
//
// It validates a document and its variables first, as the schema's owner would, then walks the selections over Objects:
// fields, aliases, arguments, variables, fragments, @include and @skip, __typename, connections, errors with partial
// data. It knows nothing of what the objects mean; package fakegithub does.
package gql
