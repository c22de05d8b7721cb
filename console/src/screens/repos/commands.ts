// Commands that pull an image, for each client. The pinned form comes before the tag.
import { pullWords } from '../../words/pull.ts'

type Image = { host: string; path: string; tag: string; digest: string; user: string }
type Client = { name: string; command: string }

export function pullCommands({ host, path, tag, digest, user }: Image): Client[] {
  const [pinned, tagged] = [`${host}/${path}@${digest}`, `${host}/${path}:${tag}`]
  const steps = (login: string, pull: (image: string) => string): string =>
    [
      ...[pullWords.loginStep, login],
      ...[pullWords.pinnedStep, pull(pinned)],
      ...[pullWords.tagStep, pull(tagged)],
    ].join('\n')
  const name = path.split('/').at(-1)!
  const secret = `kubectl create secret docker-registry pinfold --docker-server=${host} --docker-username=${user} --docker-password="$(cat password.txt)"`
  const pod = [
    'apiVersion: v1',
    'kind: Pod',
    'metadata:',
    `  name: ${name.replaceAll(/[^a-z0-9]+/g, '-')}`,
    'spec:',
    '  imagePullSecrets:',
    '    - name: pinfold',
    '  containers:',
    '    - name: app',
    `      image: ${pinned}`,
  ]
  return [
    { name: 'Docker', command: steps(`docker login --username ${user} ${host}`, (image) => `docker pull ${image}`) },
    { name: 'Podman', command: steps(`podman login --username ${user} ${host}`, (image) => `podman pull ${image}`) },
    {
      name: 'crane',
      command: steps(
        `crane auth login ${host} --username ${user} --password-stdin < password.txt`,
        (image) => `crane pull ${image} ${name}.tar`,
      ),
    },
    {
      name: 'containerd',
      command: steps(`nerdctl login --username ${user} ${host}`, (image) => `nerdctl pull ${image}`),
    },
    { name: 'Kubernetes', command: [pullWords.secretStep, secret, pullWords.podStep, ...pod].join('\n') },
  ]
}
