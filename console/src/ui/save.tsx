// Downloads.
import { ActButton } from './form.tsx'

type Props = { children: string; label?: string; file: string; read: () => Promise<string> }

/** A button that downloads a text as a file. Errors are shown beside it. */
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
  // The browser has read the text by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
