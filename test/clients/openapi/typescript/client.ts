// Calls a server with openapi-fetch and types from openapi-typescript. The environment variables `URL` and `TOKEN` name the
// server and the token.
import createClient from 'openapi-fetch'
import type { paths } from './schema'

declare const process: { env: Record<string, string | undefined> }

const client = createClient<paths>({
  baseUrl: process.env.URL ?? '',
  headers: { authorization: `Bearer ${process.env.TOKEN}` },
})

type Result<T> = { data?: T; error?: unknown; response: Response }

function must<T>(name: string, { data, error, response }: Result<T>, isRight: (data: T) => boolean): T {
  if (!response.ok || data === undefined || !isRight(data)) {
    throw new Error(`${name}: ${response.status} ${JSON.stringify(data ?? error)}`)
  }
  console.log(`ok ${name}`)
  return data
}

function gone(name: string, { error, response }: { error?: unknown; response: Response }): void {
  if (!response.ok) throw new Error(`${name}: ${response.status} ${JSON.stringify(error)}`)
  console.log(`ok ${name}`)
}

const at = (uid: string) => ({ params: { path: { uid } } })

async function groups(): Promise<string> {
  const path = '/iam/v2/groups/{uid}'
  const body = { name: 'made-by-typescript' }
  const { uid = '' } = must('create group', await client.POST(path, { ...at(''), body }), (it) => it.name === body.name)
  must('get group', await client.GET(path, at(uid)), (it) => it.uid === uid)
  const query = { 'uidp.inRoot': true, name: body.name, pageSize: 10 }
  must('list groups', await client.GET('/iam/v2/groups', { params: { query } }), (it) => it.groups?.[0]?.uid === uid)
  const patch = { body: { description: 'new' } }
  must('update group', await client.PATCH(path, { ...at(uid), ...patch }), (it) => it.description === 'new')
  return uid
}

async function repos(group: string): Promise<void> {
  const path = '/registry/v2/repos/{uid}'
  const body = { name: 'app' }
  const { uid = '' } = must('create repo', await client.POST(path, { ...at(group), body }), (it) => it.name === 'app')
  must('get repo', await client.GET(path, at(uid)), (it) => it.uid === uid)
  const query = { 'uidp.descendantsOf': group, orderBy: 'name desc' }
  must('list repos', await client.GET('/registry/v2/repos', { params: { query } }), (it) => it.repos?.length === 1)
  const masked = { params: { path: { uid }, query: { updateMask: 'description' } }, body: { description: 'new' } }
  must('update repo', await client.PATCH(path, masked), (it) => it.description === 'new' && it.name === 'app')
  gone('delete repo', await client.DELETE(path, at(uid)))
}

async function accounts(group: string): Promise<void> {
  const path = '/iam/v2/accountAssociations/{uid}'
  const github = { appInstallations: { '7': { installations: [{ installationId: '42', name: 'acme' }] } } }
  const body = { name: 'accounts', amazon: { account: '123456789012' }, github }
  const isRight = (it: { github?: typeof github | object }) => JSON.stringify(it.github) === JSON.stringify(github)
  must('create account association', await client.POST(path, { ...at(group), body }), isRight)
  must('get account association', await client.GET(path, at(group)), isRight)
  const params = { params: { query: { 'uidp.ids': [group, group] } } }
  const listed = await client.GET('/iam/v2/accountAssociations', params)
  must('list account associations', listed, (it) => it.accountAssociations?.[0]?.uid === group)
  const patch = { body: { amazon: { account: '210987654321' } } }
  const changed = await client.PATCH(path, { ...at(group), ...patch })
  must('update account association', changed, (it) => it.amazon?.account === '210987654321' && isRight(it))
  gone('delete account association', await client.DELETE(path, at(group)))
}

const group = await groups()
await repos(group)
await accounts(group)
gone('delete group', await client.DELETE('/iam/v2/groups/{uid}', at(group)))
