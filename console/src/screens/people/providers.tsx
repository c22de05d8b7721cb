// Identity providers of an organization, their group mappings, and SCIM.
import { useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { parentOf } from '../../data/names.ts'
import type { Discovery, Group, Provider } from '../../data/types.ts'
import { toUniqueNames } from '../../data/unique-names.ts'
import { ActButton, DangerButton, Form, FormButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Empty, Note, Shown } from '../../ui/states.tsx'
import { Badge, Code } from '../../ui/text.tsx'
import { eventWords } from '../../words/events.ts'
import { peopleWords } from '../../words/people.ts'
import { words } from '../../words.ts'
import { Mappings } from './mappings.tsx'
import { providerFields, providerOf } from './provider-form.ts'
import { readRoles } from './roles.ts'

const root = '/iam/v2/identityProviders'

export function Providers({ group }: { group: Group }) {
  const read = useLoad(`providers ${group.uid}`, (signal) =>
    readPage<Provider>(root, 'identityProviders', { size: 50, query: { 'uidp.childrenOf': group.uid }, signal }),
  )
  return (
    <>
      <Shown of={read}>
        {(page) => {
          if (page.items.length === 0) return <Empty>{peopleWords.noProviders}</Empty>
          const names = toUniqueNames(page.items.map(({ name }) => name))
          return (
            <>
              <Cut of={page} />
              {page.items.map((one, i) => (
                <ProviderView key={one.uid} one={one} label={names[i]!} onChange={read.reload} />
              ))}
            </>
          )
        }}
      </Shown>
      {canSaveProvider('identity_providers.create', group.uid) && <NewProvider group={group} onMade={read.reload} />}
    </>
  )
}

function ProviderView({ one, label, onChange }: { one: Provider; label: string; onChange: () => void }) {
  const { uid, name, oidc } = one
  return (
    <section aria-label={label}>
      <h3>
        <bdi>{label}</bdi>
      </h3>
      <dl>
        <dt>{peopleWords.issuer}</dt>
        <dd>
          <bdi>{oidc?.issuer ?? ''}</bdi>
        </dd>
        <dt>{peopleWords.clientId}</dt>
        <dd>
          <bdi>{oidc?.clientId ?? ''}</bdi>
        </dd>
        <dt>{peopleWords.callback}</dt>
        <dd>
          <code>{`${location.origin}/oauth/callback/${uid}`}</code>
        </dd>
      </dl>
      <Connection uid={uid} />
      <Scim uid={uid} />
      {canSaveProvider('identity_providers.update', uid) && <ChangeProvider one={one} onChange={onChange} />}{' '}
      {can('identity_providers.delete', uid) && (
        <DangerButton
          button={words.delete}
          label={peopleWords.deleteProviderOf(name)}
          title={peopleWords.deleteProviderOf(name)}
          text={peopleWords.deleteProviderText}
          mustType={name}
          act={async () => {
            await ask('DELETE', `${root}/${uid}`)
            onChange()
          }}
        />
      )}
      <Mappings provider={uid} name={label} />
    </section>
  )
}

/** Checks whether the server can read the discovery document of a provider. */
function Connection({ uid }: { uid: string }) {
  const [found, setFound] = useState<Discovery>()
  const test = async () => setFound(await ask<Discovery>('GET', `${root}/${uid}/discovery`))
  return (
    <div>
      <ActButton act={test}>{peopleWords.testConnection}</ActButton>
      {found?.state === 'STATE_READABLE' && <Note kind="good">{peopleWords.connected}</Note>}
      {found && found.state !== 'STATE_READABLE' && (
        <Note kind="warn">
          {peopleWords.notConnected} <bdi>{found.problem}</bdi>
        </Note>
      )}
    </div>
  )
}

const live = ['CREDENTIAL_STATE_LIVE', 'CREDENTIAL_STATE_ROTATING']

/** Reads each provider by itself, since lists do not contain the state of the SCIM token. */
function Scim({ uid }: { uid: string }) {
  const [token, setToken] = useState<string>()
  const read = useLoad(`scim ${uid}`, (signal) => ask<Provider>('GET', `${root}/${uid}`, { signal }))
  const callAction = (verb: string, body: object) => async () => {
    const answer = await ask<{ token?: string }>('POST', `${root}/${uid}:${verb}`, { body })
    if (answer.token !== undefined) setToken(answer.token)
    read.reload()
  }
  return (
    <Shown of={read}>
      {({ scim }) => {
        const [isOn, hasToken] = [scim?.enabled === true, live.includes(scim?.credentialState ?? '')]
        // If another user has changed the provider in the meantime, the update is refused.
        const etag = scim?.etag ?? ''
        return (
          <>
            <p>
              {peopleWords.scim}{' '}
              <Badge kind={isOn ? 'good' : 'plain'}>{isOn ? peopleWords.scimOn : peopleWords.scimOff}</Badge>{' '}
              <code>{scim?.endpointUrl ?? ''}</code>
            </p>
            {can('identity_providers.scim.manage', uid) && (
              <p>
                <ActButton act={callAction('setScimEnabled', { enabled: !isOn, etag })}>
                  {isOn ? peopleWords.turnOff : peopleWords.turnOn}
                </ActButton>{' '}
                <ActButton
                  act={callAction(hasToken ? 'regenerateScimToken' : 'generateScimToken', hasToken ? { etag } : {})}
                >
                  {hasToken ? peopleWords.newScimToken : peopleWords.firstScimToken}
                </ActButton>
              </p>
            )}
            {token !== undefined && (
              <Note kind="good">
                <p>{eventWords.secretOnce}</p>
                <Code text={token} label={eventWords.copySecret} />
              </Note>
            )}
          </>
        )
      }}
    </Shown>
  )
}

/** A provider gives a role to its users. So saving a provider needs the permission to grant roles. */
const canSaveProvider = (name: 'identity_providers.create' | 'identity_providers.update', at: string): boolean =>
  can(name, at) && can('role_bindings.create', at)

function ChangeProvider({ one, onChange }: { one: Provider; onChange: () => void }) {
  const roles = useLoad(`roles of ${parentOf(one.uid)}`, (signal) => readRoles(parentOf(one.uid), signal))
  if (!roles.data) return null
  return (
    <FormButton
      button={words.edit}
      label={words.editOf(one.name)}
      fields={providerFields(roles.data, one)}
      act={async (values) => {
        const { body, mask } = providerOf(values)
        await ask('PATCH', `${root}/${one.uid}`, { body, query: { updateMask: mask } })
        onChange()
      }}
    />
  )
}

function NewProvider({ group, onMade }: { group: Group; onMade: () => void }) {
  const [made, setMade] = useState(0)
  const roles = useLoad(`roles of ${group.uid}`, (signal) => readRoles(group.uid, signal))
  const make = async (values: Record<string, string>) => {
    await ask('POST', `${root}/${group.uid}`, { body: providerOf(values).body })
    setMade(made + 1)
    onMade()
  }
  return (
    <details>
      <summary>{peopleWords.newProvider}</summary>
      <Shown of={roles}>
        {(some) => <Form key={made} submit={words.create} onSubmit={make} fields={providerFields(some)} />}
      </Shown>
    </details>
  )
}
