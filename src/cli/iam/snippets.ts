// Configuration of a platform that can be pasted as it is.

export function gitHubJob(uid: string, api: string): string {
  return `# in .github/workflows, with pinfold on the PATH of the runner
permissions:
  contents: read
  id-token: write
env:
  PINFOLD_API: ${api}
  PINFOLD_IDENTITY: ${uid}
steps:
  - run: pinfold auth login && pinfold auth configure-docker`
}

export function gitLabJob(uid: string, api: string): string {
  return `# in .gitlab-ci.yml, with pinfold on the PATH of the runner
release:
  id_tokens:
    PINFOLD_ID_TOKEN:
      aud: ${new URL(api).host}
  variables:
    PINFOLD_API: ${api}
    PINFOLD_IDENTITY: ${uid}
  script:
    - pinfold auth login && pinfold auth configure-docker`
}

export function kubernetesPod(uid: string, api: string): string {
  return `# in the spec of the pod; in the container: pinfold auth login && pinfold auth configure-docker
containers:
  - name: app
    env:
      - { name: PINFOLD_API, value: '${api}' }
      - { name: PINFOLD_IDENTITY, value: '${uid}' }
    volumeMounts:
      - { name: pinfold-token, mountPath: /var/run/secrets/tokens, readOnly: true }
volumes:
  - name: pinfold-token
    projected:
      sources:
        - serviceAccountToken: { audience: '${new URL(api).host}', expirationSeconds: 3600, path: pinfold }`
}
