//! [`Table`]: the columns of a table in memory.

use super::Csv;
use super::schema::{Column, ColumnKind, Numbering, Schema};
use crate::split::{self, SplitSizes};
use csv::StringRecord;
use namegrad_autograd::Tensor;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use namegrad_io::sorted::{self, list_of};
use std::panic::Location;
use std::sync::Arc;

/// A table of numbers and categories: what [`Csv::read`] returns. `{}` prints its rows, `{:?}` its columns.
#[derive(Clone)]
pub struct Table {
    schema: Arc<Schema>,
    columns: Vec<Values>,
    rows: usize,
}

/// The values of a column.
#[derive(Clone)]
pub(super) enum Values {
    Numbers(Vec<f64>),
    Categories { ids: Vec<i64>, names: Vec<String> },
    Skipped,
}

impl Values {
    /// The values in rows that exist.
    fn at(&self, rows: &[usize]) -> Values {
        match self {
            Values::Skipped => Values::Skipped,
            Values::Numbers(numbers) => Values::Numbers(list_of(rows.len(), &mut |at| numbers[rows[at]])),
            Values::Categories { ids, names } => {
                let ids = list_of(rows.len(), &mut |at| ids[rows[at]]);
                Values::Categories { ids, names: names.clone() }
            }
        }
    }
}

/// The numbers of the categories of each column, while a table is read.
pub(super) type KnownCategories = Vec<Numbering>;

impl Table {
    pub(super) fn new(schema: Arc<Schema>) -> (Table, KnownCategories) {
        let (mut columns, mut known) = (Vec::new(), Vec::new());
        for kind in &schema.kinds {
            let mut numbers = Numbering::new();
            columns.push(match kind {
                kind if kind.is_numeric() => Values::Numbers(Vec::new()),
                ColumnKind::Categories(given) => {
                    let names = given.clone().unwrap_or_default();
                    for name in &names {
                        numbers.insert(name.clone(), numbers.len());
                    }
                    Values::Categories { ids: Vec::new(), names }
                }
                _ => Values::Skipped,
            });
            known.push(numbers);
        }
        (Table { columns, schema, rows: 0 }, known)
    }

    /// A table of columns with this many rows, at least one.
    pub(super) fn of(schema: Schema, columns: Vec<Values>, rows: usize) -> Table {
        Table { schema: Arc::new(schema), columns, rows }
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(super) fn values(&self) -> &[Values] {
        &self.columns
    }

    /// The columns of categories, with the categories.
    pub(super) fn known_categories(&self) -> Vec<(Column, ColumnKind)> {
        let mut known = Vec::new();
        for (at, values) in self.columns.iter().enumerate() {
            if let Values::Categories { names, .. } = values {
                let column = match &self.schema.names {
                    Some(header) => Column::from(&header[at]),
                    None => Column::from(at),
                };
                known.push((column, ColumnKind::Categories(Some(names.clone()))));
            }
        }
        known
    }

    /// Adds a row.
    pub(super) fn push(&mut self, known: &mut KnownCategories, record: &StringRecord) -> Result<()> {
        for (column, (values, known)) in self.columns.iter_mut().zip(known).enumerate() {
            match values {
                Values::Skipped => {}
                Values::Numbers(numbers) => numbers.push(self.schema.number(record, column)?),
                Values::Categories { ids, names } => {
                    let category = self.schema.category(record, column)?;
                    if let Some(id) = known.get(category) {
                        ids.push(*id as i64);
                        continue;
                    }
                    if let ColumnKind::Categories(Some(given)) = &self.schema.kinds[column] {
                        return Err(self.schema.no_category(record, column, given));
                    }
                    ids.push(names.len() as i64);
                    known.insert(category.into(), names.len());
                    names.push(category.into());
                }
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The table after its last row: missing numbers get the mean, and categories their order.
    pub(super) fn finish(mut self) -> Result<Table> {
        if self.rows == 0 {
            return Err(self.schema.no_rows());
        }
        for (column, values) in self.columns.iter_mut().enumerate() {
            let found = self.schema.kinds[column] == ColumnKind::Categories(None);
            let filled = match values {
                Values::Numbers(numbers) if self.schema.fills_mean(column) => fill_mean(numbers),
                Values::Categories { ids, names, .. } if found => {
                    sort(ids, names);
                    true
                }
                _ => true,
            };
            if !filled {
                let message = format!("{} has no values to take the mean of", self.schema.called(column));
                return Err(Csv::refused(message));
            }
        }
        Ok(self)
    }

    /// The number of rows.
    #[allow(clippy::len_without_is_empty)] // a table is never empty
    pub fn len(&self) -> usize {
        self.rows
    }

    /// The rows at `indices`, in this order, as a table with the same columns and categories: pandas' `iloc`.
    /// An index can occur several times.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let table = Csv::from_bytes(b"area,price\n70,420\n55,250\n90,510\n").read()?;
    /// let some = table.rows([2, 0])?;
    /// assert_eq!(some.column("area")?.to_vec::<f32>()?, [90.0, 70.0]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if there is no such row, [`ErrorKind::Value`] if there are no indices.
    #[track_caller]
    pub fn rows(&self, indices: impl IntoIterator<Item = usize>) -> Result<Table> {
        self.chosen(crate::list(indices.into_iter()))
    }

    #[track_caller]
    fn chosen(&self, indices: Vec<usize>) -> Result<Table> {
        if let Some(index) = indices.iter().find(|index| **index >= self.rows) {
            let message = format!("there is no row {index} in a table of {} rows", self.rows);
            return Err(Error::new(ErrorKind::Index, "rows", message));
        }
        if indices.is_empty() {
            let message = "no row is chosen, but a table has at least one";
            return Err(Error::new(ErrorKind::Value, "rows", message));
        }
        Ok(self.picked(&indices))
    }

    /// The rows at indices that are in range.
    fn picked(&self, indices: &[usize]) -> Table {
        let columns = list_of(self.columns.len(), &mut |at| self.columns[at].at(indices));
        Table { schema: self.schema.clone(), columns, rows: indices.len() }
    }

    /// The rows where `mask` is true, such as `table.column("area")?.gt(50.0)?`.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// use namegrad::prelude::*;
    /// let table = Csv::from_bytes(b"area,price\n70,420\n55,250\n90,510\n").read()?;
    /// let large = table.rows_where(&table.column("area")?.gt(60.0)?)?;
    /// assert_eq!(large.column("price")?.to_vec::<f32>()?, [420.0, 510.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the mask is not `bool`, [`ErrorKind::Shape`] if it does not have one element
    /// for each row, [`ErrorKind::Value`] if none of them is true.
    #[track_caller]
    pub fn rows_where(&self, mask: &Tensor) -> Result<Table> {
        if mask.sizes() != [self.rows] {
            let message =
                format!("the mask has sizes {:?}, but the table has {} rows", mask.sizes(), self.rows);
            return Err(Error::new(ErrorKind::Shape, "rows_where", message)
                .with_repair("table.rows_where(&table.column(\"area\")?.gt(50.0)?)?"));
        }
        let kept = mask.to_vec::<bool>()?;
        let mut rows = list_of(self.rows, &mut |row| row);
        rows.retain(|row| kept[*row]);
        self.chosen(rows)
    }

    /// Splits the rows at random: by numbers of rows, or by fractions, as in `[0.8, 0.2]`. The same seed
    /// gives the same parts, those of [`Dataset::random_split`](crate::Dataset::random_split).
    ///
    /// Split a table before you compute means or other statistics of it, so that the test part stays unknown.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let table = Csv::from_bytes(b"area,price\n70,420\n55,250\n90,510\n").read()?;
    /// let [train, test] = table.random_split([2, 1], 0)?;
    /// assert_eq!((train.len(), test.len()), (2, 1));
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the sizes do not sum to the number of rows, the fractions do not sum to one,
    /// or a part is empty.
    #[track_caller]
    pub fn random_split<const K: usize>(
        &self,
        sizes: impl Into<SplitSizes<K>>,
        seed: u64,
    ) -> Result<[Table; K]> {
        let caller = Location::caller();
        let parts = split::indices(self.rows, &sizes.into(), seed).map_err(|error| error.at(caller))?;
        Ok(parts.map(|indices| self.picked(&indices)))
    }

    /// `k` pairs of tables for cross-validation, to train on and to test on. Each row is in one of the test
    /// tables, which differ in length by at most one. The same seed gives the same pairs, those of
    /// [`Dataset::k_folds`](crate::Dataset::k_folds).
    ///
    /// ```
    /// use namegrad::data::{Csv, Standardize};
    /// let table = Csv::from_bytes(b"area,price\n70,420\n55,250\n90,510\n40,200\n").read()?;
    /// for [train, test] in table.k_folds(4, 0)? {
    ///     let scaler = Standardize::fit(&train.column("area")?)?;
    ///     let x = scaler.transform(&test.column("area")?)?;
    ///     assert_eq!((train.len(), x.size("N")?), (3, 1));
    /// }
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if `k` is less than two, or more than the number of rows.
    #[track_caller]
    pub fn k_folds(&self, k: usize, seed: u64) -> Result<Vec<[Table; 2]>> {
        let caller = Location::caller();
        let folds = split::fold_indices(self.rows, k, seed).map_err(|error| error.at(caller))?;
        Ok(list_of(k, &mut |at| [self.picked(&folds[at][0]), self.picked(&folds[at][1])]))
    }

    /// The rows by the values of a column, as a table for each value, with the value as text: by the order of
    /// the categories, or of the numbers. NaN comes last.
    ///
    /// A sum or a mean for each category is one of segments:
    /// `price.segment_mean(&table.category("city")?, "N", ("city", 2))`.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let csv = Csv::from_bytes(b"city,price\nRome,250\nOslo,420\nRome,350\n");
    /// let table = csv.categories(["city"]).read()?;
    /// let mut means = Vec::new();
    /// for (city, rows) in table.group_by("city")? {
    ///     means.push((city, rows.column("price")?.mean(..)?.item::<f32>()?));
    /// }
    /// assert_eq!(means, [("Oslo".into(), 420.0), ("Rome".into(), 300.0)]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there is no such column, or it was skipped.
    #[track_caller]
    pub fn group_by(&self, column: impl Into<Column>) -> Result<Vec<(String, Table)>> {
        let (column, caller) = (column.into(), Location::caller());
        let mut groups = self.groups(&column).map_err(|error| error.at(caller))?;
        Ok(list_of(groups.len(), &mut |at| {
            let (name, rows) = &mut groups[at];
            (std::mem::take(name), self.picked(rows))
        }))
    }

    /// How many rows have each value of a column, as text: the most frequent values first, and equally
    /// frequent ones by the order of the categories, or of the numbers.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let table = Csv::from_bytes(b"city\nRome\nOslo\nRome\n").categories(["city"]).read()?;
    /// assert_eq!(table.value_counts("city")?, [("Rome".into(), 2), ("Oslo".into(), 1)]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`group_by`](Self::group_by).
    #[track_caller]
    pub fn value_counts(&self, column: impl Into<Column>) -> Result<Vec<(String, usize)>> {
        let (column, caller) = (column.into(), Location::caller());
        let mut groups = self.groups(&column).map_err(|error| error.at(caller))?;
        let order = sorted::order(groups.len(), &|a, b| groups[a].1.len() > groups[b].1.len());
        Ok(list_of(order.len(), &mut |at| {
            let (name, rows) = &mut groups[order[at]];
            (std::mem::take(name), rows.len())
        }))
    }

    /// The rows with each value of a column.
    fn groups(&self, column: &Column) -> Result<Vec<(String, Vec<usize>)>> {
        let column = self.schema.find(column)?;
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        match &self.columns[column] {
            Values::Skipped => return Err(self.skipped(column)),
            Values::Categories { ids, names } => {
                groups = list_of(names.len(), &mut |at| (names[at].clone(), Vec::new()));
                for (row, id) in ids.iter().enumerate() {
                    groups[*id as usize].1.push(row);
                }
                groups.retain(|(_, rows)| !rows.is_empty());
            }
            Values::Numbers(numbers) => {
                let is_less = |a: f64, b: f64| a < b || b.is_nan() && !a.is_nan();
                let order = sorted::order(numbers.len(), &|a, b| is_less(numbers[a], numbers[b]));
                let mut last = None;
                for row in order {
                    let number = numbers[row];
                    match groups.last_mut().filter(|_| last.is_some_and(|last| !is_less(last, number))) {
                        Some((_, rows)) => rows.push(row),
                        None => groups.push((self.text(column, number), vec![row])),
                    }
                    last = Some(number);
                }
            }
        }
        Ok(groups)
    }

    /// The names of the columns, without those that were [skipped](Csv::skip); empty if the table has no
    /// header.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let csv = Csv::from_bytes(b"id,area,city,price\n1,70,Oslo,420\n2,55,Rome,250\n");
    /// let table = csv.skip(["id"]).categories(["city"]).read()?;
    /// assert_eq!(table.names(), ["area", "city", "price"]);
    /// assert_eq!(table.numeric_columns(), ["area", "price"]);
    /// assert_eq!(table.category_columns(), ["city"]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    pub fn names(&self) -> Vec<&str> {
        self.names_of(&|values| !matches!(values, Values::Skipped))
    }

    /// The names of the columns of numbers, dates and times; empty if the table has no header.
    pub fn numeric_columns(&self) -> Vec<&str> {
        self.names_of(&|values| matches!(values, Values::Numbers(_)))
    }

    /// The names of the columns of categories; empty if the table has no header.
    /// [`category_names`](Self::category_names) has the categories of one of them.
    pub fn category_columns(&self) -> Vec<&str> {
        self.names_of(&|values| matches!(values, Values::Categories { .. }))
    }

    fn names_of(&self, is_meant: &dyn Fn(&Values) -> bool) -> Vec<&str> {
        let names = self.schema.names.as_deref().unwrap_or_default().iter().zip(&self.columns);
        crate::list(names.filter(|(_, values)| is_meant(values)).map(|(name, _)| name.as_str()))
    }

    /// A column of numbers, `[N]` in `f32`. [`column_in`](Self::column_in) has other dtypes, such as for ids
    /// above 2²⁴, which `f32` would round, and for [times](Csv::times), which it would round to minutes.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if there is no such column, or it does not have
    /// numbers.
    #[track_caller]
    pub fn column(&self, column: impl Into<Column>) -> Result<Tensor> {
        let (column, caller) = (column.into(), Location::caller());
        let numbers = self.schema.find(&column).and_then(|column| self.numbers(column));
        let numbers: Vec<f32> =
            crate::list(numbers.map_err(|error| error.at(caller))?.iter().map(|x| *x as f32));
        Tensor::from_slice(&numbers, [("N", numbers.len())])
    }

    /// A column of numbers, `[N]` in `dtype`. The table has them in `f64`, which holds whole numbers up
    /// to 2⁵³.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// use namegrad::prelude::*;
    /// let table = Csv::from_bytes(b"id,area\n16777217,70.5\n").read()?;
    /// assert_eq!(table.column_in("id", DType::I64)?.item::<i64>()?, 16777217);
    /// assert!(table.column_in("area", DType::I64).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`column`](Self::column), and [`ErrorKind::Value`] if `dtype` is not that of floating point
    /// numbers and a number is not a whole one that it can hold.
    #[track_caller]
    pub fn column_in(&self, column: impl Into<Column>, dtype: DType) -> Result<Tensor> {
        let (column, caller) = (column.into(), Location::caller());
        let cast = || {
            let at = self.schema.find(&column)?;
            let numbers = Tensor::from_slice(self.numbers(at)?, [("N", self.rows)])?;
            let cast = numbers.to(dtype)?;
            if !dtype.is_floating_point() && !cast.to(DType::F64)?.equal(&numbers)? {
                let message = format!("{} has numbers that {dtype} cannot hold", self.schema.called(at));
                return Err(Csv::refused(message).with_repair("table.column(column)?"));
            }
            Ok(cast)
        };
        cast().map_err(|error: Error| error.at(caller))
    }

    /// The table with a column of these numbers, in place of one with that name or after the others.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let table = Csv::from_bytes(b"area,price\n70,420\n50,250\n").read()?;
    /// let table = table.with_column("per area", table.column("price")?.div(table.column("area")?)?)?;
    /// assert_eq!(table.columns(["area", "per area"])?.to_vec::<f32>()?, [70.0, 6.0, 50.0, 5.0]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless `values` has one number for each row, [`ErrorKind::Value`] if the table has
    /// no header.
    #[track_caller]
    pub fn with_column(&self, name: &str, values: impl AsRef<NamedTensor>) -> Result<Table> {
        const OP: &str = "with_column";
        let (values, caller) = (values.as_ref(), Location::caller());
        if values.sizes() != [self.rows] {
            let message =
                format!("the values have sizes {:?}, but the table has {} rows", values.sizes(), self.rows);
            return Err(Error::new(ErrorKind::Shape, OP, message));
        }
        let numbers = Values::Numbers(values.to(DType::F64)?.to_vec()?);
        let mut schema = Schema::clone(&self.schema);
        let column = schema.place(name).map_err(|error| error.of(OP).at(caller))?;
        let mut columns = self.columns.clone();
        match columns.get_mut(column) {
            Some(own) => *own = numbers,
            None => columns.push(numbers),
        }
        Ok(Table::of(schema, columns, self.rows))
    }

    /// Columns of numbers, `[N, feature]` in `f32`, which rounds [times](Csv::times) to minutes.
    ///
    /// # Errors
    /// Same as [`column`](Self::column).
    #[track_caller]
    pub fn columns<C: Into<Column>>(&self, columns: impl IntoIterator<Item = C>) -> Result<Tensor> {
        let caller = Location::caller();
        let found =
            columns.into_iter().map(|column| self.schema.find(&column.into())).collect::<Result<Vec<_>>>();
        found.and_then(|found| self.matrix(&found)).map_err(|error| error.at(caller))
    }

    /// All columns of numbers but some, `[N, feature]` in `f32`. Columns of categories are not among them, but
    /// those of dates and times are, as days and seconds since 1970; `f32` rounds times to minutes.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let table = Csv::from_bytes(b"area,rooms,price\n70,3,420\n").read()?;
    /// assert_eq!(table.columns_except(["price"])?.to_vec::<f32>()?, [70.0, 3.0]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if there is no such column.
    #[track_caller]
    pub fn columns_except<C: Into<Column>>(&self, columns: impl IntoIterator<Item = C>) -> Result<Tensor> {
        let caller = Location::caller();
        let left_out = crate::list(columns.into_iter().map(|column| self.schema.find(&column.into())));
        let rest = |left_out: Vec<usize>| {
            let is_rest = |column: &usize| {
                matches!(self.columns[*column], Values::Numbers(_)) && !left_out.contains(column)
            };
            self.matrix(&crate::list::<_, Vec<_>>((0..self.columns.len()).filter(is_rest)))
        };
        let left_out: Result<Vec<usize>> = left_out;
        left_out.and_then(rest).map_err(|error| error.at(caller))
    }

    fn matrix(&self, columns: &[usize]) -> Result<Tensor> {
        let mut lists = Vec::new();
        for column in columns {
            lists.push(self.numbers(*column)?);
        }
        let mut matrix =
            NamedTensor::zeros([("N", self.rows), ("feature", columns.len())])?.to(DType::F32)?;
        for (row, values) in matrix.as_mut_slice::<f32>()?.chunks_exact_mut(columns.len().max(1)).enumerate()
        {
            for (value, numbers) in values.iter_mut().zip(&lists) {
                *value = numbers[row] as f32;
            }
        }
        Ok(Tensor::constant(matrix))
    }

    /// The numbers of a column, in the precision of the file.
    fn numbers(&self, column: usize) -> Result<&[f64]> {
        let called = self.schema.called(column);
        match &self.columns[column] {
            Values::Numbers(numbers) => Ok(numbers),
            Values::Categories { .. } => Err(Csv::refused(format!("{called} has categories, not numbers"))
                .with_repair("table.category(column)?")),
            Values::Skipped => Err(self.skipped(column)),
        }
    }

    #[cold]
    fn skipped(&self, column: usize) -> Error {
        Csv::refused(format!("{} was skipped", self.schema.called(column)))
    }

    /// The numbers of the categories of a column, `[N]` in `i64`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if there is no such column, or it has no
    /// categories.
    #[track_caller]
    pub fn category(&self, column: impl Into<Column>) -> Result<Tensor> {
        let (column, caller) = (column.into(), Location::caller());
        let (ids, _) = self.categories(&column).map_err(|error| error.at(caller))?;
        Tensor::from_slice(ids, [("N", ids.len())])
    }

    /// The names of the categories of a column, in the order of their numbers.
    ///
    /// # Errors
    /// Same as [`category`](Self::category).
    #[track_caller]
    pub fn category_names(&self, column: impl Into<Column>) -> Result<&[String]> {
        let (column, caller) = (column.into(), Location::caller());
        self.categories(&column).map(|(_, names)| names).map_err(|error| error.at(caller))
    }

    fn categories(&self, column: &Column) -> Result<(&[i64], &[String])> {
        let column = self.schema.find(column)?;
        match &self.columns[column] {
            Values::Categories { ids, names, .. } => Ok((ids, names)),
            Values::Numbers(_) => {
                let message = format!("{} has numbers, not categories", self.schema.called(column));
                Err(Csv::refused(message).with_repair("Csv::new(path).categories([column])"))
            }
            Values::Skipped => Err(self.skipped(column)),
        }
    }
}

/// Replaces NaN, which marks missing values, with the mean of the others; false if there are no others.
fn fill_mean(numbers: &mut [f64]) -> bool {
    if !numbers.iter().any(|number| number.is_nan()) {
        return true;
    }
    let (mut count, mut sum) = (0.0, 0.0);
    for number in numbers.iter().filter(|number| !number.is_nan()) {
        count += 1.0;
        sum += number;
    }
    numbers.iter_mut().filter(|number| number.is_nan()).for_each(|number| *number = sum / count);
    count > 0.0
}

/// Numbers categories in alphabetical order.
fn sort(ids: &mut [i64], names: &mut [String]) {
    let order = sorted::order(names.len(), &|a, b| names[a] < names[b]);
    let mut new = vec![0; names.len()];
    order.iter().zip(0..).for_each(|(old, id)| new[*old] = id);
    ids.iter_mut().for_each(|id| *id = new[*id as usize]);
    sorted::sort(names, &|a, b| a < b);
}
