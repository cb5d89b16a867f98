// React Aria's table: keyboard, selection and screen readers as in a desktop's file manager, and only the rows in sight are made.
import { useLingui } from '@lingui/react/macro'
import { useMediaQuery } from '@mantine/hooks'
import { type RefObject, useEffect, useMemo, useRef } from 'react'
import {
  Cell,
  Column,
  Row,
  type Selection,
  type SortDescriptor,
  Table,
  TableBody,
  TableHeader,
  TableLayout,
  TableLoadMoreItem,
  Virtualizer,
} from 'react-aria-components'
import type { FileEntry } from '../../../../../src/sdk/index.ts'
import type { FileOrder } from '../../../api/files.ts'
import type { Sight } from '../../../api/live/pages-in-sight.ts'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import css from './file-table.module.css'
import { RenameField } from './rename-field.tsx'

interface Props {
  entries: readonly FileEntry[]
  /** Kept up to date: the rows that somebody sees. */
  sight: RefObject<Sight>
  order: FileOrder
  onOrder: (order: FileOrder) => void
  selected: Selection
  onSelect: (selected: Selection) => void
  onOpen: (entry: FileEntry) => void
  onDelete: () => void
  onRename: () => void
  /** The entry whose name is being typed. */
  renamed: string | null
  onRenamed: (to: string | null) => void
  hasMore: boolean
  isLoadingMore: boolean
  onLoadMore: () => void
}

const LAYOUT = { rowHeight: 40, headingHeight: 38, loaderHeight: 40 }

export function FileTable(props: Props) {
  const { t, i18n } = useLingui()
  const { entries, order, selected, renamed, onRenamed } = props
  const isNarrow = useMediaQuery('(max-width: 560px)', false, { getInitialValueInEffect: false })
  const sortDescriptor: SortDescriptor = {
    column: order.sort,
    direction: order.order === 'asc' ? 'ascending' : 'descending',
  }
  const byName = useMemo(() => new Map(entries.map((entry) => [entry.name, entry])), [entries])
  const frame = useRef<HTMLDivElement>(null)
  const focusRow = useRowFocus(frame)
  useSight(frame, props.sight)
  const handleKey = (event: React.KeyboardEvent) => {
    if (event.key === 'Delete') props.onDelete()
    if (event.key === 'F2') props.onRename()
  }
  const isCancelled = useRef(false)
  const endRename = (to: string | null, hasLeft: boolean) => {
    const taken = isCancelled.current ? null : to
    if (!hasLeft || isCancelled.current) focusRow(taken ?? renamed)
    isCancelled.current = false
    onRenamed(taken)
  }
  // The keys of the table move through rows and cells, and find a row by its first letters.
  const keepFromTable = (event: React.KeyboardEvent) => {
    if (!(event.target instanceof HTMLInputElement)) return
    event.stopPropagation()
    if (event.key !== 'Escape') return
    isCancelled.current = true
    event.target.blur()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys belong to the grid within, which has the focus
    <div ref={frame} className={css.frame} onKeyDown={handleKey} onKeyDownCapture={keepFromTable}>
      <Virtualizer layout={TableLayout} layoutOptions={LAYOUT}>
        <Table
          aria-label={t`Files`}
          className={css.table}
          selectionMode="multiple"
          selectionBehavior="replace"
          selectedKeys={selected}
          onSelectionChange={props.onSelect}
          sortDescriptor={sortDescriptor}
          onSortChange={({ column, direction }) =>
            props.onOrder({ sort: column as FileOrder['sort'], order: direction === 'ascending' ? 'asc' : 'desc' })
          }
          onRowAction={(key) => {
            const entry = byName.get(String(key))
            if (entry) props.onOpen(entry)
          }}
        >
          <TableHeader className={css.header}>
            <Column id="name" isRowHeader allowsSorting className={css.column} defaultWidth="3fr" minWidth={160}>
              {t`Name`}
            </Column>
            <Column id="size" allowsSorting className={css.column} defaultWidth={100} minWidth={80}>
              {t`Size`}
            </Column>
            {!isNarrow && (
              <Column id="time" allowsSorting className={css.column} defaultWidth={140} minWidth={100}>
                {t`Changed`}
              </Column>
            )}
          </TableHeader>
          <TableBody>
            {entries.map((entry) => (
              <Row key={entry.name} id={entry.name} textValue={entry.name} className={css.row}>
                <Cell className={css.cell}>
                  <span className={css.name} data-kind={entry.kind}>
                    <Icon name={entry.kind === 'directory' ? 'folder' : 'file'} size={17} />
                    {entry.name === renamed ? (
                      <RenameField name={entry.name} onEnd={endRename} />
                    ) : (
                      <span className="cut">{entry.name}</span>
                    )}
                    {entry.symlinkTarget !== null && <span className="faint cut">→ {entry.symlinkTarget}</span>}
                  </span>
                </Cell>
                <Cell className={css.cell}>
                  {entry.kind === 'file' && <span className="faint">{formatBytes(entry.sizeBytes, i18n.locale)}</span>}
                </Cell>
                {!isNarrow && (
                  <Cell className={css.cell}>
                    <span className="faint cut">
                      <Moment at={entry.modifiedAt} />
                    </span>
                  </Cell>
                )}
              </Row>
            ))}
            {props.hasMore && (
              <TableLoadMoreItem isLoading={props.isLoadingMore} onLoadMore={props.onLoadMore} className={css.more}>
                …
              </TableLoadMoreItem>
            )}
          </TableBody>
        </Table>
      </Virtualizer>
    </div>
  )
}

/** All rows are of one height. */
function useSight(frame: RefObject<HTMLElement | null>, sight: RefObject<Sight>): void {
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const look = (event?: Event) => {
      const scrolled = event?.target instanceof HTMLElement ? event.target : element.querySelector('[role=grid]')
      const { scrollTop = 0, clientHeight = 0 } = scrolled ?? {}
      const first = Math.max(0, Math.floor((scrollTop - LAYOUT.headingHeight) / LAYOUT.rowHeight))
      sight.current = { first, last: first + Math.ceil(clientHeight / LAYOUT.rowHeight) }
    }
    look()
    // Of whatever is scrolled within.
    element.addEventListener('scroll', look, { capture: true, passive: true })
    return () => element.removeEventListener('scroll', look, { capture: true })
  }, [frame, sight])
}

/** Gives the focus back to a row, as soon as there is one of that name. */
function useRowFocus(frame: React.RefObject<HTMLElement | null>) {
  const wanted = useRef<string | null>(null)
  useEffect(() => {
    if (wanted.current === null) return
    const row = frame.current?.querySelector<HTMLElement>(`[role=row][data-key="${CSS.escape(wanted.current)}"]`)
    if (!row) return
    wanted.current = null
    row.focus()
  })
  return (name: string | null) => {
    wanted.current = name
  }
}
