// Every command by its first word. What a command needs is loaded when it is the one that was asked for.
import type { CommandEntry } from './shape/command.ts'

export const commands: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Serve the API over REST and gRPC on one port',
    load: async () => (await import('./server/serve.ts')).serve,
  },
  {
    name: 'health',
    summary: 'Ask the server on this machine whether it is ready, as container engines want to know',
    load: async () => (await import('./server/health.ts')).health,
  },
  {
    name: 'auth',
    summary: 'Sign in to a server, as a person or as a CI job, a pod or a cloud workload',
    load: async () => (await import('./iam/auth.ts')).auth,
  },
  {
    name: 'iam',
    summary: 'Organisations, folders, identities, roles and who has them',
    load: async () => (await import('./iam/iam.ts')).iam,
  },
  {
    name: 'identities',
    summary: 'Work with identities',
    load: async () => (await import('./iam/identities.ts')).identities,
  },
  {
    name: 'bindings',
    summary: 'Roles that others have given you',
    load: async () => (await import('./iam/bindings.ts')).bindings,
  },
  {
    name: 'sessions',
    summary: 'Where people are signed in',
    load: async () => (await import('./iam/sessions.ts')).sessions,
  },
  {
    name: 'images',
    summary: 'Look at images, their tags and how these moved, and delete them',
    load: async () => (await import('./registry/images.ts')).images,
  },
  {
    name: 'events',
    summary: 'What happens on the server, as it is told to others',
    load: async () => (await import('./events/events.ts')).events,
  },
  {
    name: 'import',
    summary: 'Fill the server from files',
    load: async () => (await import('./imports/import.ts')).imports,
  },
  {
    name: 'libraries',
    summary: 'Libraries of Java and Python',
    load: async () => (await import('./imports/libraries.ts')).libraries,
  },
  {
    name: 'blobs',
    summary: 'Where blobs are kept',
    load: async () => (await import('./server/blobs.ts')).blobs,
  },
  {
    name: 'gc',
    summary: 'Remove blobs that no manifest needs',
    load: async () => (await import('./server/gc.ts')).gc,
  },
  {
    name: 'backup',
    summary: 'Copy the database as of one moment, and the blobs that it names, while servers run',
    load: async () => (await import('./server/backup.ts')).backupCommand,
  },
  {
    name: 'restored',
    summary: 'Settle a database that was restored from a backup, before a server starts on it',
    load: async () => (await import('./server/backup.ts')).restoredCommand,
  },
  {
    name: 'verify',
    summary: 'Compare what the database says with what there is, or check the proof of what a tag was',
    load: async () => (await import('./server/verify.ts')).verifyCommand,
  },
  {
    name: 'keys',
    summary: 'The keys that the server keeps',
    load: async () => (await import('./server/keys.ts')).keys,
  },
  {
    name: 'ledger',
    summary: 'The history of tags, for those who run the server',
    load: async () => (await import('./server/ledger.ts')).ledger,
  },
  {
    name: 'quotas',
    summary: 'How much organisations may have, for those who run the server',
    load: async () => (await import('./server/quotas.ts')).quotas,
  },
  {
    name: 'token',
    summary: 'Print a token, made with the keys of the data folder',
    load: async () => (await import('./server/token.ts')).token,
  },
  {
    name: 'console',
    summary: 'Print a link that lets one browser in as the operator',
    load: async () => (await import('./server/console.ts')).consoleLink,
  },
  {
    name: 'docker-credential',
    summary: 'Answer docker, which runs this as docker-credential-pinfold',
    load: async () => (await import('./registry/docker-credential.ts')).dockerCredential,
  },
  {
    name: 'kubelet-credential-provider',
    summary: 'Answer the kubelet, which runs this as a credential provider for pulling images',
    load: async () => (await import('./registry/kubelet-credential-provider.ts')).kubeletCredentialProvider,
  },
  {
    name: 'migrate',
    summary: 'Bring the database up to this version and stop; serve does the same with an embedded one',
    load: async () => (await import('./server/migrate.ts')).migrate,
  },
  {
    name: 'config',
    summary: 'What is set for your commands, and every setting of a server',
    load: async () => (await import('./server/config.ts')).config,
  },
  {
    name: 'vulnerabilities',
    summary: 'What is known of vulnerabilities, and from where',
    load: async () => (await import('./vulnerabilities/vulnerabilities.ts')).vulnerabilities,
  },
]
