# Makes the Dockerfile of a release from that of the repository: the programs are those that were released, for each platform, instead of
# ones that are built.
/^ARG GO_IMAGE=/d
/^FROM .* AS build$/,/^FROM .* AS cli$/{
/ AS cli$/!d
}
s,^FROM ${NODE_IMAGE}$,&\
ARG TARGETPLATFORM,
s,^COPY --from=build /out/,COPY ${TARGETPLATFORM}/,
s,^COPY prompts /app/prompts,COPY LICENSE dist-files/THIRD_PARTY_NOTICES.txt /app/\
&,
