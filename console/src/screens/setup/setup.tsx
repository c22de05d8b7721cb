// Setup page for the operator: the first steps on a new server, with check marks from the state of the server.
import type { ComponentChildren } from 'preact'
import type { ListVulnerabilitySourcesResponseJson } from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { organization } from '../../app/organization.ts'
import { paths } from '../../app/paths.ts'
import { me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { forgetPaths } from '../../data/names.ts'
import type { Group } from '../../data/types.ts'
import { CodeTabs } from '../../ui/code-tabs.tsx'
import { Form } from '../../ui/form.tsx'
import { Icon } from '../../ui/icon.tsx'
import { useLoad } from '../../ui/load.ts'
import { Screen } from '../../ui/screen.tsx'
import { Note, Shown } from '../../ui/states.tsx'
import { Code } from '../../ui/text.tsx'
import { creationWords } from '../../words/creation.ts'
import { setupWords } from '../../words/setup.ts'
import { words } from '../../words.ts'

type Sources = ListVulnerabilitySourcesResponseJson
type State = { organization: string; organizations: number; providers: number; tags: number; sources: Sources }

export function SetupScreen() {
  const state = useLoad('setup', readState)
  return (
    <Screen title={setupWords.setupTitle} documentTitle={[setupWords.setupTitle, words.serverAdministration]}>
      <Shown of={state}>{(data) => <Steps state={data} reload={state.reload} />}</Shown>
    </Screen>
  )
}

async function readState(signal: AbortSignal): Promise<State> {
  const one = { size: 1, signal }
  const [groups, providers, tags, sources] = await Promise.all([
    readPage<Group>('/iam/v2/groups', 'groups', { ...one, query: { 'uidp.inRoot': true } }),
    readPage('/iam/v2/identityProviders', 'identityProviders', one),
    readPage('/registry/v2/tags', 'tags', one),
    ask<Sources>('GET', '/control/v1/vulnerabilitySources', { signal }),
  ])
  const count = ({ items, total = items.length }: { items: readonly unknown[]; total: number | undefined }) => total
  return {
    organization: organization.value || (groups.items[0]?.name ?? ''),
    organizations: count(groups),
    providers: count(providers),
    tags: count(tags),
    sources,
  }
}

function Steps({ state, reload }: { state: State; reload: () => void }) {
  const { organizations, providers, tags, sources } = state
  const name = organizations > 0 ? state.organization : ''
  const done = [organizations > 0, me.hasSignIn || providers > 0, tags > 0, isDataOn(sources)]
  const count = done.filter((one) => one).length
  return (
    <div class="setup">
      <p class="lead">{setupWords.setupIntro}</p>
      <p role="status">
        {count === done.length ? setupWords.setupDone : setupWords.stepsDone(count, done.length)}{' '}
        {name !== '' && <a href={paths.group([name])}>{setupWords.openOverview}</a>}
      </p>
      <ol class="steps">
        <Step title={setupWords.organizationStep} isDone={done[0]!}>
          <OrganizationStep {...{ name, count: organizations, reload }} />
        </Step>
        <Step title={setupWords.signInStep} isDone={done[1]!}>
          <SignInStep {...{ name, providers }} />
        </Step>
        <Step title={setupWords.pushStep} isDone={done[2]!}>
          {tags > 0 ? <p>{setupWords.pushedTags(tags)}</p> : <PushStep name={name} />}
        </Step>
        <Step title={setupWords.dataStep} isDone={done[3]!}>
          <DataStep sources={sources} />
        </Step>
      </ol>
    </div>
  )
}

function Step({ title, isDone, children }: { title: string; isDone: boolean; children: ComponentChildren }) {
  return (
    <li data-done={isDone ? 'yes' : 'no'}>
      <Icon name={isDone ? 'good' : 'unscanned'} />
      <div>
        <h2>
          {title} <span class="unseen">({isDone ? setupWords.stepDone : setupWords.stepOpen})</span>
        </h2>
        {children}
      </div>
    </li>
  )
}

type OrganizationProps = { name: string; count: number; reload: () => void }

function OrganizationStep({ name, count, reload }: OrganizationProps) {
  if (count > 0) return <p>{setupWords.organizationExists(name, count)}</p>
  const create = async (values: Record<string, string>) => {
    await ask('POST', '/iam/v2/groups/', { body: { name: values.name } })
    forgetPaths()
    reload()
  }
  return (
    <>
      <p>{setupWords.organizationHint}</p>
      <Form
        submit={creationWords.newOrganization}
        onSubmit={create}
        fields={[{ name: 'name', label: setupWords.organizationName, hint: creationWords.orgNameHint }]}
      />
    </>
  )
}

function SignInStep({ name, providers }: { name: string; providers: number }) {
  const members = paths.group([name], 'members', 'invitations')
  return (
    <>
      {me.hasSignIn && <p>{setupWords.signInOfServer}</p>}
      {providers > 0 && <p>{setupWords.signInConnected(providers)}</p>}
      {!me.hasSignIn && providers === 0 && <p>{setupWords.signInHint}</p>}
      {name === '' ? (
        <p class="hint">{setupWords.needsOrganization}</p>
      ) : (
        <p class="actions">
          {!me.hasSignIn && providers === 0 && (
            <a class="button" href={members}>
              {setupWords.connectProvider}
            </a>
          )}
          <a class="button" href={members}>
            {setupWords.invitePerson}
          </a>
        </p>
      )}
    </>
  )
}

function PushStep({ name }: { name: string }) {
  if (name === '') return <p class="hint">{setupWords.needsOrganization}</p>
  const image = `${me.host}/${name}/app:1.0`
  const push = (client: string) => `pinfold docker configure\n${client} tag alpine ${image}\n${client} push ${image}`
  return (
    <>
      <p>{setupWords.pushHint}</p>
      <CodeTabs
        label={setupWords.pushCommands}
        clients={[
          { name: 'Docker', command: push('docker') },
          { name: 'Podman', command: push('podman') },
          { name: 'crane', command: `pinfold docker configure\ncrane copy alpine ${image}` },
        ]}
      />
    </>
  )
}

/** True if the server downloads data, or if data was read by hand. */
const isDataOn = ({ syncInterval, sources = [] }: Sources): boolean =>
  syncInterval !== undefined || sources.some(({ fetchTime }) => fetchTime !== undefined)

function DataStep({ sources: { syncInterval, sources = [] } }: { sources: Sources }) {
  const read = sources.filter(({ fetchTime }) => fetchTime !== undefined).length
  const failed = sources.find(({ error = '' }) => error !== '')
  return (
    <>
      {read > 0 && <p>{setupWords.dataRead(read)}</p>}
      {failed && <Note kind="warn">{setupWords.dataFailed(failed.name ?? '', failed.error ?? '')}</Note>}
      {syncInterval === undefined ? (
        <>
          <p>{setupWords.dataOff}</p>
          <Code text="pinfold vulnerabilities sync" label={words.copyCommand} />
        </>
      ) : (
        <p>{setupWords.dataOn(Math.round(Number.parseFloat(syncInterval) / 3600))}</p>
      )}
    </>
  )
}
