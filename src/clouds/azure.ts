// Azure: client credentials of an application, with a federated credential instead of a secret.
import { type Asking, answerOf, ask, form, memberOf, requireText } from './ask.ts'
import type { CloudAccount, CloudAnswer } from './cloud-account.ts'

const name = 'Azure'
/** Audience that Microsoft recommends for a federated credential. */
const audience = 'api://AzureADTokenExchange'

/** All the applications, at the same time; the first that is refused, in the order of the components, is the answer. */
export async function checkAzure(
  asking: Asking,
  { tenantId, clientIds }: CloudAccount & { cloud: 'azure' },
): Promise<CloudAnswer> {
  const answers = await Promise.all(
    Object.entries(clientIds).map(([component, clientId]) =>
      answerOf(() => signIn(asking, tenantId, component, clientId)),
    ),
  )
  return answers.find(({ ready }) => !ready) ?? { ready: true }
}

async function signIn(asking: Asking, tenantId: string, component: string, clientId: string): Promise<void> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    scope: 'https://graph.microsoft.com/.default',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await asking.assert({ subject: `${component}:${asking.group}`, audience }),
  })
  const url = `${asking.endpoints.azureLogin}/${encodeURIComponent(tenantId)}/oauth2/v2.0/token`
  const whose = `${name} (component ${component})`
  const answer = await ask(asking, whose, { url, headers: form, body: body.toString() }, (refused) => {
    const error = memberOf(refused, 'error')
    return typeof error === 'string' ? `${error}: ${String(memberOf(refused, 'error_description') ?? '')}` : undefined
  })
  requireText(memberOf(answer, 'access_token'), whose, 'a token')
}
