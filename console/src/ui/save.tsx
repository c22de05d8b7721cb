// Files that a person keeps.
import { ActButton } from './form.tsx'

type Props = { children: string; label?: string; file: string; read: () => Promise<string> }

/** A button that reads a text and saves it under a name; what goes wrong is shown beside it. */
export function SaveButton({ children, label, file, read }: Props) {
  return (
    <ActButton {...(label !== undefined && { label })} act={async () => save(file, await read())}>
      {children}
    </ActButton>
  )
}

function save(file: string, text: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  link.download = file
  link.click()
  // The browser has taken the text by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
