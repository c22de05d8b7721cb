// Page with every component in every state, for people who change the console. It is served only in development, by
// scripts/components.ts. Its texts are samples, so they are not in words/.
import { type ComponentChildren, render } from 'preact'
import { useState } from 'preact/hooks'
import { startSettings } from '../src/app/settings.ts'
import { Refusal } from '../src/data/api.ts'
import { Ago } from '../src/ui/ago.tsx'
import { Person } from '../src/ui/avatar.tsx'
import { Button } from '../src/ui/button.tsx'
import { CodeTabs } from '../src/ui/code-tabs.tsx'
import { CoverageBadge, FindingsStrip } from '../src/ui/findings.tsx'
import { DangerButton, Form, FormButton } from '../src/ui/form.tsx'
import { Icon } from '../src/ui/icon.tsx'
import { MenuButton, MenuItem } from '../src/ui/menu.tsx'
import { Picker } from '../src/ui/picker.tsx'
import { RadioList } from '../src/ui/radio-list.tsx'
import { Screen } from '../src/ui/screen.tsx'
import { Empty, Note, Problem, Waiting } from '../src/ui/states.tsx'
import { Pages, Table } from '../src/ui/table.tsx'
import { Segmented, Tabs } from '../src/ui/tabs.tsx'
import { Badge, Code, Copy, Digest, Time } from '../src/ui/text.tsx'
import { showToast, Toasts } from '../src/ui/toast.tsx'

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

function Buttons() {
  return (
    <Part title="Buttons">
      <div class="actions">
        <Button kind="primary" icon="add">
          Create policy
        </Button>
        <Button>Edit</Button>
        <Button kind="ghost">Cancel</Button>
        <Button kind="danger">Delete repository</Button>
        <Button isSmall>Compare</Button>
        <Button icon="settings" isSmall>
          Columns
        </Button>
      </div>
      <div class="actions">
        <Button kind="primary" icon="add" isBusy>
          Create policy
        </Button>
        <Button kind="primary" disabledReason="Type the name of the repository first">
          Delete
        </Button>
        <Button disabledReason="Only owners can invite members">Invite members</Button>
        <a class="button" href="#link">
          Link as a button
        </a>
      </div>
    </Part>
  )
}

const roles = [
  { value: 'reader', label: 'Reader', description: 'See and pull images.' },
  { value: 'developer', label: 'Developer', description: 'Push images and update tags that are not protected.' },
  {
    value: 'admin',
    label: 'Admin',
    description: 'Manage policies, mirrors and members. Cannot delete the organization.',
  },
]
const folders = ['payments', 'platform', 'platform/edge', 'platform/observability', 'data', 'web', 'mirror'].map(
  (name, i) => ({ value: name, label: name, description: `${i + 2} repositories` }),
)

function Fields() {
  const [role, setRole] = useState('developer')
  const [folder, setFolder] = useState('payments')
  return (
    <Part title="Fields">
      <Form
        submit="Save"
        onSubmit={() => Promise.reject(new Refusal(409, 'Another person changed this policy at 11:40 UTC.'))}
        fields={[
          { name: 'name', label: 'Name', hint: 'Letters, digits and hyphens.', value: 'No critical findings' },
          { name: 'none', label: 'Description', isOptional: true },
          {
            ...{ name: 'state', label: 'State', type: 'select', value: 'dry' },
            options: [
              { value: 'dry', label: 'Dry run' },
              { value: 'on', label: 'Enforced' },
            ],
          },
          { name: 'tags', label: 'Tags (one per line)', type: 'lines', value: 'v*\nrelease-*' },
          { name: 'fix', label: 'Only vulnerabilities with a fix', type: 'check', value: 'yes' },
        ]}
      />
      <div class="field">
        <label for="wrong">Minimum age</label>
        <input id="wrong" value="soon" aria-invalid="true" aria-describedby="wrong-error" />
        <span class="field-error" id="wrong-error">
          Enter a number of days, such as 3d.
        </span>
      </div>
      <div class="field">
        <label for="fixed">Client ID</label>
        <input id="fixed" value="pinfold" readOnly />
      </div>
      <Picker
        label="Folder"
        hint="The policy applies in this folder."
        options={folders}
        value={folder}
        onChoose={setFolder}
      />
      <Picker label="Loading folders" options={[]} value="" onChoose={setFolder} isLoading />
      <RadioList label="Role" name="role" options={roles} value={role} onChoose={setRole} />
    </Part>
  )
}

function Choices() {
  const [span, setSpan] = useState('30 days')
  const tabs = ['Tags', 'Activity', 'Pull', 'Readme', 'Retention', 'Access', 'Settings']
  return (
    <Part title="Tabs, choices and menus">
      <Tabs
        label="Sample tabs"
        tabs={tabs.map((label, i) => ({
          ...{ label, href: `#${label}`, isNow: i === 0, ...(i % 5 === 0 && { count: i === 0 ? 4812 : 12 }) },
        }))}
      />
      <Segmented
        label="Time span"
        choices={['7 days', '30 days', '90 days', 'All'].map((one) => ({ value: one, label: one }))}
        value={span}
        onChoose={setSpan}
      />
      <div class="actions">
        <button type="button" class="chip">
          <Icon name="add" />
          Severity
        </button>
        <button type="button" class="chip set">
          Status: open
          <Icon name="close" />
        </button>
        <MenuButton label="Actions">
          <ul>
            <MenuItem icon="copy">Copy pinned reference</MenuItem>
            <MenuItem icon="settings" href="#settings">
              Settings
            </MenuItem>
            <MenuItem isDanger>Delete tag</MenuItem>
          </ul>
        </MenuButton>
        <MenuButton label="More actions of stable" icon="more">
          <ul>
            <MenuItem isNow>Newest first</MenuItem>
            <MenuItem isNow={false}>By name</MenuItem>
          </ul>
        </MenuButton>
      </div>
    </Part>
  )
}

function Badges() {
  return (
    <Part title="Badges, findings, people and times">
      <div class="actions">
        <Badge kind="good">Enforced</Badge>
        <Badge kind="warn">Dry run</Badge>
        <Badge kind="bad">Failing since 07:12</Badge>
        <Badge kind="info">Syncing 12 of 40 tags</Badge>
        <Badge kind="plain">Off</Badge>
        <CoverageBadge href="#coverage">not scanned</CoverageBadge>
        <CoverageBadge href="#coverage">being scanned</CoverageBadge>
      </div>
      <div class="actions">
        <FindingsStrip counts={{ critical: 1, high: 4, medium: 11, low: 20, unknown: 0 }} href="#findings" />
        <FindingsStrip counts={{ critical: 0, high: 0, medium: 3, low: 8, unknown: 2 }} />
        <Person name="Ada Lovelace" />
        <Person name="Grace Hopper" />
        <Person name="ci-release" isBot />
        <Ago at={new Date(Date.now() - 18 * 60_000).toISOString()} />
        <Ago at="2025-11-28T11:24:00Z" />
        <Time at="2026-11-28T11:24:00Z" />
      </div>
    </Part>
  )
}

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`
const tags = ['stable', '2026.11.4', 'canary', 'a-tag-with-a-very-long-name-'.repeat(4)].map((name, i) => ({ name, i }))

function Tables() {
  const columns = [
    { title: 'Tag', order: 'name', isHead: true, cell: ({ name }: { name: string }) => <a href="#tag">{name}</a> },
    { title: 'Digest', cell: ({ i }: { i: number }) => <Digest of={digest('9abc'[i]!)} /> },
    {
      title: 'Findings',
      cell: ({ i }: { i: number }) =>
        i === 2 ? (
          <CoverageBadge href="#coverage">no package list</CoverageBadge>
        ) : (
          <FindingsStrip counts={{ critical: i, high: 4 - i, medium: 11, low: 20, unknown: 0 }} />
        ),
    },
    { title: 'Size', isNumber: true, cell: ({ i }: { i: number }) => `${128 - i} MB` },
    { title: 'Pulls', isNumber: true, cell: ({ i }: { i: number }) => (18_204 * (3 - i)).toLocaleString('en') },
    { title: 'Updated by', cell: () => <Person name="ci-release" isBot /> },
    { title: 'Updated', order: 'update_time', cell: () => <Time at="2026-11-28T11:24:00Z" /> },
    {
      title: 'Actions',
      cell: ({ i }: { i: number }) => <Copy text={digest('9abc'[i]!)} label={`Copy the digest of row ${i + 1}`} />,
    },
  ]
  return (
    <Part title="Tables">
      <Table
        caption="Tags of payments/ledger"
        isCaptionShown
        columns={columns}
        items={tags}
        keyOf={({ name }) => name}
        order="update_time desc"
        classOf={({ i }) => (i === 1 ? 'then' : '')}
      />
      <Pages page={2} size={50} total={4812} />
    </Part>
  )
}

function States() {
  return (
    <Part title="States and messages">
      <Note action={<Button isSmall>Add data source</Button>} kind="warn">
        <strong>Not scanned completely.</strong> 2 of 214 packages are not covered: Maven has no data source.
      </Note>
      <Note kind="info">Policies use stored results, so no pull waits for a scan.</Note>
      <Note>Each person gets a link and accepts the role when they sign in.</Note>
      <Problem error={new Refusal(503, 'The list could not be loaded.')} retry={() => undefined} />
      <Empty action={<Button kind="primary">Create repository</Button>} command="docker push host/acme/app:v1">
        No repositories yet. Push an image to create the first one.
      </Empty>
      <Empty action={<Button>Clear filters</Button>}>No tag contains “rc-7”. 48 tags are hidden by 2 filters.</Empty>
      <Waiting />
    </Part>
  )
}

function Dialogs() {
  return (
    <Part title="Dialogs, messages and code">
      <div class="actions">
        <DangerButton
          button="Delete repository"
          title="Delete repository payments/reports?"
          text="Deletes 43 tags and 29.7 GB. This cannot be undone."
          mustType="payments/reports"
          act={async () => undefined}
        />
        <FormButton
          button="Invite"
          label="Invite to acme"
          fields={[{ name: 'email', label: 'Email', type: 'email' }]}
          act={async () => undefined}
        />
        <Button onClick={() => showToast('Policy saved.')}>Show a message</Button>
      </div>
      <Code text={`docker pull registry.acme.example/payments/ledger@${digest('9')}`} label="Copy the command" />
      <CodeTabs
        label="Client"
        clients={[
          { name: 'Docker', command: 'docker pull registry.acme.example/payments/ledger:stable' },
          { name: 'Podman', command: 'podman pull registry.acme.example/payments/ledger:stable' },
          { name: 'crane', command: 'crane pull registry.acme.example/payments/ledger:stable ledger.tar' },
        ]}
      />
    </Part>
  )
}

function Components() {
  return (
    <>
      <main id="main" tabIndex={-1}>
        <Screen title="Components" trail={[{ label: 'acme', href: '#acme' }]} actions={<Button>Page action</Button>}>
          <Buttons />
          <Fields />
          <Choices />
          <Badges />
          <Tables />
          <States />
          <Dialogs />
        </Screen>
      </main>
      <Toasts />
    </>
  )
}

startSettings()
render(<Components />, document.body)
