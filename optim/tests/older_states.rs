//! States that earlier versions have saved can be loaded: the text of each kind is written out.

use namegrad::prelude::*;
use namegrad_core::NamedTensor;
use namegrad_io::TensorFile;
use namegrad_optim::schedule::{
    CycleMode, Cyclic, OneCycle, ReduceOnPlateau, Schedule, Scheduler, SchedulerState, Sequence, StepDecay,
};
use namegrad_optim::{
    Adafactor, AdjustLr, AverageState, AveragedModel, GradScaler, GradScalerState, Lbfgs, LineSearch, Muon,
    OptimizerState,
};

/// A file with this text under a metadata key, and tensors of twos.
fn file(key: &str, text: &str, tensors: &[(&str, &[usize])]) -> Result<TensorFile> {
    let mut file = TensorFile::default();
    file.metadata.insert(key.into(), text.into());
    for (name, sizes) in tensors {
        file.tensors.insert(name.to_string(), NamedTensor::full(sizes.to_vec(), 2.0)?);
    }
    Ok(file)
}

#[test]
fn a_state_of_an_optimizer() -> Result<()> {
    let weight = Parameter::new(Tensor::ones([("in", 2)])?.to(DType::BF16)?)?;
    let mut optimizer = Sgd::builder_named([("fc.weight".to_string(), weight)]).build()?;
    let text = r#"{"method":"Sgd","groups":[{"hyperparameters":{"lr":0.05,"momentum":0.9,"dampening":0.0,
        "weight_decay":1e-3,"nesterov":false,"maximize":true},"parameters":[{"path":"fc.weight","sizes":[2],
        "names":["in"],"steps":3,"master":true,"slots":["momentum_buffer"]}]}]}"#;
    let file = file("optimizer", text, &[("0.momentum_buffer", &[2]), ("0.master", &[2])])?;
    let state = OptimizerState::from_file(&file)?;
    optimizer.load_state_dict(&state)?;
    let group = &optimizer.groups()[0];
    assert_eq!((group.lr, group.momentum, group.weight_decay, group.maximize), (0.05, 0.9, 1e-3, true));
    let parameter = &optimizer.state_dict().groups[0].parameters[0];
    assert_eq!((parameter.steps, parameter.path.as_deref()), (3, Some("fc.weight")));
    assert_eq!(parameter.slots["momentum_buffer"].to_vec::<f32>()?, [2.0, 2.0]);
    assert_eq!(parameter.master.as_ref().unwrap().to_vec::<f32>()?, [2.0, 2.0]);
    Ok(())
}

#[test]
fn hyperparameters_that_are_no_numbers() -> Result<()> {
    let matrix = || Parameter::new(Tensor::ones([("out", 2), ("in", 2)])?);
    let load = |optimizer: &mut dyn Optimizer, hyperparameters: &str, shared: &str| -> Result<()> {
        let method = optimizer.state_dict().method;
        let text = format!(
            r#"{{"method":"{method}","groups":[{{"hyperparameters":{hyperparameters},"parameters":[{{"sizes":[2,2],
            "names":[null,"in"],"steps":0,"slots":[]}}]}}]{shared}}}"#
        );
        let tensors: &[(&str, &[usize])] = match shared {
            "" => &[],
            _ => &[
                ("shared.d", &[4]),
                ("shared.prev_flat_grad", &[4]),
                ("shared.t", &[]),
                ("shared.H_diag", &[]),
                ("shared.ro", &[0]),
            ],
        };
        optimizer.load_state_dict(&OptimizerState::from_file(&file("optimizer", &text, tensors)?)?)
    };
    let mut muon = Muon::new([matrix()?])?;
    let text = r#"{"lr":1,"ns_coefficients":[1.0,2,3.0],"ns_steps":3,"adjust_lr_fn":"match_rms_adamw"}"#;
    load(&mut muon, text, "")?;
    let group = &muon.groups()[0];
    assert_eq!((group.lr, group.ns_coefficients, group.ns_steps), (1.0, (1.0, 2.0, 3.0), 3));
    assert_eq!((group.adjust_lr_fn, group.momentum), (Some(AdjustLr::MatchRmsAdamw), 0.95));
    let mut adafactor = Adafactor::builder([matrix()?]).eps((Some(1.0), 2.0)).build()?;
    load(&mut adafactor, r#"{"eps":[null,0.5]}"#, "")?;
    assert_eq!(adafactor.groups()[0].eps, (None, 0.5));
    let mut lbfgs = Lbfgs::new([matrix()?])?;
    let text = r#"{"max_iter":4,"max_eval":null,"line_search_fn":"strong_wolfe"}"#;
    load(&mut lbfgs, text, r#","shared":["d","prev_flat_grad","t","H_diag","ro"]"#)?;
    assert_eq!(lbfgs.groups()[0].line_search_fn, Some(LineSearch::StrongWolfe));
    assert_eq!(lbfgs.state_dict().shared["d"].to_vec::<f32>()?, [2.0; 4]);
    Ok(())
}

#[test]
fn states_of_schedules() -> Result<()> {
    let optimizer = || Sgd::builder([Parameter::new(Tensor::new([1.0])?)?]).lr(0.5).momentum(0.9).build();
    let rates = |schedule: Box<dyn Schedule>, settings: &str, momentums: &str| -> Result<Vec<f64>> {
        let mut optimizer = optimizer()?;
        let name = schedule.name();
        let mut scheduler = Scheduler::new(schedule, &mut optimizer)?;
        let text = format!(
            r#"{{"schedule":"{name}","settings":{settings},"step":2.0,"base_lrs":[0.5],"lrs":[0.125],
            "momentums":{momentums}}}"#
        );
        let state = SchedulerState::from_file(&file("scheduler", &text, &[])?)?;
        scheduler.load_state_dict(&state, &mut optimizer)?;
        assert_eq!((scheduler.steps(), optimizer.lr()), (2.0, 0.125));
        Ok(optimizer.momentums().unwrap_or_default())
    };
    let text = r#"{"step_size":3,"gamma":0.1}"#;
    assert_eq!(rates(Box::new(StepDecay::new(3)), text, "null")?, [0.9]);
    let text = r#"{"max_lr":[0.1],"total_steps":20,"pct_start":0.3,"anneal_strategy":"cos","cycle_momentum":true,
        "div_factor":25.0,"final_div_factor":10000.0,"three_phase":false,"base_momentum":0.85,
        "max_momentum":0.95}"#;
    assert_eq!(rates(Box::new(OneCycle::new([0.1], 20)), text, "[0.75]")?, [0.75]);
    let text = r#"{"base_lr":0.01,"max_lr":0.1,"step_size_up":3,"mode":{"exp_range":0.9},"cycle_momentum":false,
        "base_momentum":0.8,"max_momentum":0.9,"step_size_down":null,"scale_fn":null,"scale_mode":null}"#;
    let cyclic = Cyclic::new(0.01, 0.1).step_size_up(3).mode(CycleMode::ExpRange(0.9)).cycle_momentum(false);
    rates(Box::new(cyclic), text, "null")?;
    let text = r#"{"milestones":[2],"schedules":[{"name":"StepDecay","settings":{"gamma":0.1,"step_size":3}},
        {"name":"StepDecay","settings":{"gamma":0.5,"step_size":1}}]}"#;
    let sequence = Sequence::new(StepDecay::new(3)).then(2, StepDecay::new(1).gamma(0.5));
    rates(Box::new(sequence), text, "null")?;

    let mut optimizer = optimizer()?;
    let mut plateau = ReduceOnPlateau::new(&optimizer)?;
    let text = r#"{"schedule":"ReduceOnPlateau","settings":{"mode":"min","factor":0.1,"patience":10,
        "threshold":0.0001,"threshold_mode":"rel","cooldown":0,"eps":1e-8,"min_lr":0.0},"step":3.0,
        "base_lrs":[0.25],"lrs":[0.25],"momentums":null,
        "memory":{"best":"inf","cooldown_counter":0,"num_bad_epochs":2}}"#;
    let state = SchedulerState::from_file(&file("scheduler", text, &[])?)?;
    plateau.load_state_dict(&state, &mut optimizer)?;
    assert_eq!((plateau.steps(), plateau.best(), optimizer.lr()), (3, f64::INFINITY, 0.25));
    Ok(())
}

#[test]
fn states_of_a_scaler_and_of_an_average() -> Result<()> {
    let text = r#"{"scale":1024.0,"growth_factor":2.0,"backoff_factor":0.5,"growth_interval":7,"growth_tracker":3,
        "steps_taken":5,"steps_skipped":1}"#;
    let mut scaler = GradScaler::new();
    scaler.load_state_dict(&GradScalerState::from_file(&file("grad_scaler", text, &[])?)?)?;
    assert_eq!((scaler.scale_factor(), scaler.steps_taken(), scaler.steps_skipped()), (1024.0, 5, 1));

    let model = Sequential::new().then(Linear::new(("in", 2), ("h", 3))?);
    let mut average = AveragedModel::ema(&model, 0.5)?;
    let text = r#"{"rule":"ema","decay":0.99,"use_buffers":false,"n_averaged":4,
        "parameters":{"0.bias":4,"0.weight":3},"buffers":{}}"#;
    let file = file("average", text, &[("0.weight", &[3, 2]), ("0.bias", &[3])])?;
    average.load_state_dict(&AverageState::from_file(&file)?)?;
    let state = average.state_dict();
    assert_eq!((average.n_averaged(), state.decay, state.parameters["0.weight"].count), (4, Some(0.99), 3));
    Ok(())
}
