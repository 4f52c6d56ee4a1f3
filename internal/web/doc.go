// Package web is the door for people and programs: REST under /api/v1 and what a server needs beside it.
package web

import (
	_ "github.com/danielgtaylor/huma/v2"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
)
