# The image: the self-contained executable under its names, and nothing else. No shell, no libraries, no CA certificates:
# whom to trust is in the kubeconfig, or in the files that a network configuration names.
#
#   make image                                             for this machine
#   make image PLUGINS=/usr/lib/cni                        with other plugins, which the installer puts beside ours
#
# That lays out build/image and builds from it. By hand, for several machines at once:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=... .
FROM scratch
ARG TARGETARCH
ARG VERSION=unknown
LABEL org.opencontainers.image.title="tortie" \
      org.opencontainers.image.description="Calico's CNI plugins in Python, and their installer" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY build/image/linux-${TARGETARCH}/ /
# Nobody, unless a manifest says otherwise: only who writes into a node's folders has to be root.
USER 65532:65532
ENV PATH=/usr/bin
ENTRYPOINT ["/usr/bin/calico"]
CMD ["help"]
