// Mistakes of new users from before these tests, for docs/first-hour.md. The answers are those of the commit below.

const then = '2dea214'

/** Obstacles without an answer of the program, and where their solution is. */
const walls: readonly (readonly [wall: string, was: string, now: string])[] = [
  [
    'The first push',
    'At line 235 of the README. It needed a restart with two settings, a second program, and an organization, an identity and a role binding made with `curl` by uids',
    'Three lines after `npm start` ([above](#the-first-screen))',
  ],
  [
    'Organizations, folders, repositories, roles, role bindings, invitations, providers',
    "There was `curl`: `unknown command 'iam'`",
    'Commands with names, such as `pinfold orgs create acme` ([commands](reference/commands.md))',
  ],
  [
    'A password for a laptop or a cron job',
    "There was none: `unknown command 'push-token'`",
    '[Push tokens](guides/push-tokens.md)',
  ],
  ['The user of a tag update', '`BY` was a uid', '`BY` is a name ([above](#the-first-screen))'],
  [
    'The list of repositories',
    '`/v2/_catalog`: `NAME_UNKNOWN`, `there is no such path`',
    'The repositories that the caller may list ([registry](reference/registry.md))',
  ],
  [
    'The address in a browser',
    '404 and a line of JSON',
    'The [console](reference/console.md), or a page about the server',
  ],
  [
    '`pinfold --version`',
    '0.88 s of CPU time, as for the credential helper of docker. Node alone takes 0.04 s',
    'Only the needed modules are loaded ([figures](../bench/RESULTS.md))',
  ],
  [
    'An import, a migration, a large layer',
    'No output until the end',
    'A progress line in a terminal ([commands](reference/commands.md#output-formats))',
  ],
  [
    'A container, Kubernetes',
    'No image, no compose file, no chart',
    '`npm run image`, a compose file and a chart ([install](install.md))',
  ],
  [
    'TLS',
    "`unknown option '--tls-cert'`. A proxy was needed",
    '`--tls-cert` and `--tls-key` ([operations](operations/tls.md))',
  ],
]

/** Earlier answers to the mistake of a title, of the program or of the API where there was no command. */
const answers: Readonly<Record<string, string>> = {
  'The data folder is a file': "EEXIST: file already exists, mkdir 'file'",
  'A misspelled setting': 'PINFOLD_LISTN is not a setting',
  'The database is unavailable': 'the database is not available: connect ECONNREFUSED 127.0.0.1:1',
  'A wrong data folder': 'nothing; `pinfold token --data data/typo` made the folder, and a token that no server took',
  'The server is not running': 'http://127.0.0.1:8082 cannot be reached: ECONNREFUSED',
  'Not signed in':
    'not signed in: run pinfold login --identity UID, or set PINFOLD_IDENTITY where the platform gives a token',
  'The token of another server': 'the token is not one that this server issued',
  'A value that is not a token': 'the token is not one that this server issued',
  'A missing permission': 'the caller does not hold the required capabilities',
  'A push without permission': 'denied: access to the repository is denied',
  'A push to the wrong organization, by the operator': 'denied: the caller may not create the repository',
  'A push without an organization': 'name invalid: the name of the repository is not valid',
  'An unknown role': 'Invalid argument: role_uid: is not a uid',
  'A name that is taken': 'iam.pinfold.dev/Group acme already exists: an organisation has this name',
  'The history of an unknown tag': 'nothing but the head of an empty table, with exit code 0',
  'The deletion of an organization that is not empty':
    'the group still has repos below it; the group still has identities below it',
  'The data folder belongs to another user': "EACCES: permission denied, open 'data/serve.lock'",
  'HTTPS to a server without TLS': 'https://127.0.0.1:8443 cannot be reached: ERR_SSL_WRONG_VERSION_NUMBER',
  'A proxy, and no URL in the settings':
    'nothing; docker was sent to 127.0.0.1 of its own machine for a token, and failed there',
}

/** Line with the former answer. Empty if the answer is the same or was not recorded. */
export function beforeOf(title: string): string {
  const was = answers[title]
  if (was === undefined) return ''
  return was.startsWith('nothing') ? `\nAt first it said ${was}.\n` : `\nAt first it said \`${was}\`.\n`
}

/** Section about former obstacles. Throws if a former answer belongs to no section. */
export function wallsOf(titles: readonly string[]): string {
  const lost = Object.keys(answers).filter((title) => !titles.includes(title))
  if (lost.length > 0) throw new Error(`no mistake is called ${lost.join(', ')}`)
  const rows = walls.map((row) => `| ${row.join(' | ')} |`)
  return `## Former obstacles

This table shows what stopped new users at commit \`${then}\`, before these tests existed, and how it is now. "At first it said" in the sections
below shows the former message.

| Obstacle | Before | Now |
| --- | --- | --- |
${rows.join('\n')}
`
}
