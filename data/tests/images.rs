//! Images in folders.

use namegrad::data::{Dataset, ImageFolder, Loader, read_gray_image, read_image};
use namegrad::prelude::*;
use std::path::{Path, PathBuf};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("namegrad-images-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 3 by 2 pixels whose red is 0, 1, .. and whose green is 100.
const PNG: &[u8] = include_bytes!("data/3x2.png");
/// 8 by 8 pixels of gray level 51.
const JPEG: &[u8] = include_bytes!("data/gray.jpg");

fn write(path: &Path, image: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, image).unwrap();
}

#[test]
fn a_folder_for_each_class() -> Result<()> {
    let folder = Folder::new("classes");
    for file in ["dog/b.png", "dog/more/a.PNG", "cat/1.png", "cat/2.jpg"] {
        write(&folder.0.join(file), PNG); // the content, not the name, tells the format
    }
    std::fs::write(folder.0.join("dog/notes.txt"), "no image").unwrap();
    std::fs::write(folder.0.join("README"), "no class").unwrap();
    let images = ImageFolder::load(&folder.0)?;
    assert_eq!((images.classes(), images.len()), (&["cat", "dog"].map(String::from)[..], 4));
    let names: Vec<_> =
        (0..4).map(|index| images.path(index).unwrap().strip_prefix(&folder.0).unwrap()).collect();
    assert_eq!(names, ["cat/1.png", "cat/2.jpg", "dog/b.png", "dog/more/a.PNG"].map(Path::new));
    let (x, class) = images.get(2)?;
    assert_eq!((x.shape().to_string(), class), ("[C=3, H=2, W=3]".into(), 1));
    let levels: Vec<u8> = x.to_vec::<f32>()?.iter().map(|level| (level * 255.0).round() as u8).collect();
    assert_eq!(levels, [[0, 1, 2, 3, 4, 5], [100; 6], [0; 6]].concat());
    let (gray, _) = images.clone().gray().get(0)?;
    assert_eq!(gray.shape().to_string(), "[C=1, H=2, W=3]");
    let (x, y) = Loader::builder(images).batch_size(4).workers(2).build()?.iter().next().unwrap()?;
    assert_eq!((x.size("N")?, y.to_vec::<i64>()?), (4, vec![0, 0, 1, 1]));

    write(&folder.0.join("cat/1.png"), JPEG);
    let (x, _) = ImageFolder::load(&folder.0)?.get(0)?;
    assert_eq!(x.shape().to_string(), "[C=3, H=8, W=8]");
    assert!(x.to_vec::<f32>()?.iter().all(|level| (level - 0.2).abs() < 0.01));
    Ok(())
}

#[test]
fn damaged_folders() -> Result<()> {
    let folder = Folder::new("damaged");
    let refused = |path: &Path| {
        let error = ImageFolder::load(path).unwrap_err();
        assert_eq!(error.location().file(), file!());
        error
    };
    assert_eq!(refused(&folder.0.join("nowhere")).kind(), ErrorKind::Io);
    assert!(refused(&folder.0).message().ends_with("no folder of a class in it"));
    std::fs::create_dir(folder.0.join("cat")).unwrap();
    assert!(refused(&folder.0).message().ends_with("cat: no .png, .jpg or .jpeg in the folder of a class"));

    let path = folder.0.join("cat/1.png");
    let huge = [&PNG[..16], &[255; 8], &PNG[24..]].concat();
    for damaged in [&PNG[..PNG.len() / 2], &JPEG[..JPEG.len() / 2], b"", b"no image", &huge] {
        std::fs::write(&path, damaged).unwrap();
        let loader = Loader::new(ImageFolder::load(&folder.0)?, 1)?;
        let error = loader.iter().next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.message().starts_with("sample 0: ") && error.message().contains("1.png"), "{error}");
        let error = ImageFolder::load(&folder.0)?.get(0).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Format, file!()));
    }
    assert_eq!(ImageFolder::load(&folder.0)?.get(1).unwrap_err().location().file(), file!());
    Ok(())
}

#[test]
fn a_single_image() -> Result<()> {
    let folder = Folder::new("single");
    let (png, text) = (folder.0.join("a"), folder.0.join("b.png"));
    write(&png, PNG);
    write(&text, b"no image");
    let red = read_image(&png)?.select("C", 0)?.mul(255.0)?.round()?;
    assert_eq!(red.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(read_gray_image(&png)?.sizes(), [1, 2, 3]);
    for (result, kind) in [
        (read_image(&text), ErrorKind::Format),
        (read_gray_image(folder.0.join("missing.png")), ErrorKind::Io),
        (read_image(&folder.0), ErrorKind::Io),
    ] {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (kind, file!()), "{error}");
    }
    Ok(())
}
