// Commands for several clients. Each client has a tab.
import { useState } from 'preact/hooks'
import { words } from '../words.ts'
import { Segmented } from './tabs.tsx'
import { Code } from './text.tsx'

type Client = { name: string; command: string }

export function CodeTabs({ label, clients }: { label: string; clients: readonly Client[] }) {
  const [name, setName] = useState(clients[0]?.name ?? '')
  const client = clients.find((one) => one.name === name)
  return (
    <>
      <Segmented
        label={label}
        choices={clients.map((one) => ({ value: one.name, label: one.name }))}
        value={name}
        onChoose={setName}
      />
      {client && <Code key={name} text={client.command} label={words.copyCommandFor(name)} />}
    </>
  )
}
