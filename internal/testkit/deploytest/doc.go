// Package deploytest reads the files by which Claude Ops is deployed: Dockerfile, .dockerignore, compose.yaml,
// .env.example and the systemd unit. Only tests use it: those beside it hold the files against the code and against
// each other, and e2e replays the image.
package deploytest
